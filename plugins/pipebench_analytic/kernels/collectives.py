"""Seconds of collectives inside a node: a start, a term that grows with the root of the bytes, and the bandwidth.

The root stands for the change of protocols: small messages go in small steps, large ones in large steps, and the
bandwidth is reached slowly. Fitted for each operation and group size by least squares on relative errors.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from pipebench.algorithms.descent import Floats
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value

Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
FEWEST_POINTS = 6
NEAR = 0.05
ROUNDS = 30


@dataclass(frozen=True, slots=True)
class CollectiveTable:
    """Measured calls of one operation. bytes: of the whole buffer (all devices' shares together)."""

    devices: Floats
    bytes: Floats
    seconds: Floats


class CollectiveCurve(Value, frozen=True, kw_only=True):
    """fixed_s + root_s x sqrt(bytes) + bytes / bytes_s, for a group of `devices`."""

    devices: int
    fixed_s: float
    root_s: float
    bytes_s: float

    def seconds(self, size: ArrayLike) -> Floats:
        """Seconds of one call. size: bytes of the whole buffer."""
        whole = np.asarray(size, np.float64)
        return np.asarray(self.fixed_s + self.root_s * np.sqrt(whole) + whole / self.bytes_s)


class CollectiveCurves(Value, frozen=True, kw_only=True):
    """Curves of one device's node by operation, in the order of their group sizes."""

    all_reduce: tuple[CollectiveCurve, ...] = ()
    all_gather: tuple[CollectiveCurve, ...] = ()
    reduce_scatter: tuple[CollectiveCurve, ...] = ()
    all_to_all: tuple[CollectiveCurve, ...] = ()

    def seconds(self, operation: Operation, devices: int, size: ArrayLike) -> Floats | None:
        """Seconds of one call in a group inside a node; None: no curve reaches to so many devices.

        size: bytes of the whole buffer: what each device has before an all-reduce and after an all-gather. Between
        two group sizes seconds are interpolated. One device takes no time.
        """
        if devices == 1:
            return np.zeros_like(np.asarray(size, np.float64))
        curves: tuple[CollectiveCurve, ...] = getattr(self, operation)
        if not curves or not curves[0].devices <= devices <= curves[-1].devices:
            return None
        above = next(number for number, each in enumerate(curves) if each.devices >= devices)
        high = curves[above]
        if high.devices == devices:
            return high.seconds(size)
        low = curves[above - 1]
        share = (devices - low.devices) / (high.devices - low.devices)
        return np.asarray((1 - share) * low.seconds(size) + share * high.seconds(size))


def fit_collective(table: CollectiveTable) -> tuple[CollectiveCurve, ...]:
    """One curve for each group size. Raises PipebenchError for a size with fewer than FEWEST_POINTS calls."""
    curves = []
    for devices in np.unique(table.devices):
        own = table.devices == devices
        if own.sum() < FEWEST_POINTS:
            raise PipebenchError(
                f"a collective of {int(devices)} devices was measured {own.sum()} times, a fit needs more",
                f"measure {FEWEST_POINTS} sizes or more",
            )
        fixed, root, each = _not_negative(table.bytes[own], table.seconds[own])
        bytes_s = 1 / each if each > 0 else FASTEST
        rounded = [float(f"{number:.4g}") for number in (fixed, root, bytes_s)]
        curves.append(
            CollectiveCurve(devices=int(devices), fixed_s=rounded[0], root_s=rounded[1], bytes_s=rounded[2])
        )
    return tuple(curves)


FASTEST = 1e15
"""bytes/s where no bytes were seen to take time."""


def _not_negative(size: Floats, seconds: Floats) -> Floats:
    """Coefficients >= 0 of one, sqrt(bytes) and bytes, the best over all sets; far errors count by their size."""
    matrix = np.column_stack([np.ones_like(size), np.sqrt(size), size]) / seconds[:, None]
    scale = np.linalg.norm(matrix, axis=0)
    matrix = matrix / scale
    best, least = np.zeros(3), np.inf
    for count in (1, 2, 3):
        for chosen in combinations(range(3), count):
            columns = matrix[:, list(chosen)]
            weights = np.ones(len(size))
            for _ in range(ROUNDS):
                root = np.sqrt(weights)[:, None]
                solved = np.linalg.lstsq(columns * root, root[:, 0], rcond=None)[0]
                errors = columns @ solved - 1
                weights = 1 / np.sqrt(1 + (errors / NEAR) ** 2)
            loss = float((np.sqrt(1 + (errors / NEAR) ** 2) - 1).sum())
            if (solved >= 0).all() and loss < least:
                best, least = np.zeros(3), loss
                best[list(chosen)] = solved
    return np.asarray(best / scale)
