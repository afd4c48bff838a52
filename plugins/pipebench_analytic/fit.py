"""Least squares on relative errors: the rates of a roofline from measured times.

A measured time is that of one or two kernels (a backward computes two gradients), each the larger of compute and
memory time plus an overhead. Which of both binds a kernel decides which coefficients it depends on, linearly;
fitting and deciding take turns until nothing changes (a regression with a max of planes: Magnani and Boyd, Convex
piecewise-linear fitting, 2009). Single times that are far off count by their distance, not its square.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pipebench_analytic.roofline import Kernel, Rates

Floats = NDArray[np.float64]
MOST_ROWS = 2.0**16
"""The largest r_half that is fitted."""
ROUNDS = 40
NEAR = 0.02
"""Relative errors below this one count by their square, larger ones by their size."""
ENDLESS = 2.0**62
"""A rate that nothing in the measurement shows."""


@dataclass(frozen=True, slots=True)
class TimedPoint:
    """A measured time of these kernels at a micro-batch size.

    group: points that are left out together.
    """

    kernels: tuple[Kernel, ...]
    samples: int
    seconds: float
    group: str = ""

    def seconds_at(self, rates: Rates) -> float:
        """The seconds that these rates predict."""
        return sum(rates.seconds(kernel, self.samples) for kernel in self.kernels)


def fit_rates(points: Sequence[TimedPoint]) -> Rates:
    """The rates that fit these points best; a bound that none of them shows is as slow as they allow."""
    system = _System(points)
    starts = system.guesses()
    best: tuple[float, Floats] | None = None
    for start in starts:
        found = system.descend(start)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    return system.rates(best[1])


def scale_rates(points: Sequence[TimedPoint], rates: Rates) -> Rates:
    """These rates, all slower or faster by one factor: for kinds with few points."""
    ratios = [point.seconds / known for point in points if (known := point.seconds_at(rates)) > 0]
    factor = float(np.median(ratios)) if ratios else 1.0
    factor = min(max(factor, 1e-6), 1e6)
    return Rates(rates.flops_per_s / factor, rates.r_half, rates.bytes_per_s / factor, rates.launch_s * factor)


class _System:
    """Columns by kernel: FLOP, FLOP at the largest r_half, bytes, one. Coefficients: seconds of each."""

    def __init__(self, points: Sequence[TimedPoint]) -> None:
        rows = [(number, point, kernel) for number, point in enumerate(points) for kernel in point.kernels]
        self.owner = np.array([number for number, _, _ in rows])
        self.count = len(points)
        self.seconds = np.array([point.seconds for point in points])
        flops = np.array([kernel.flops * point.samples if kernel.rows else 0.0 for _, point, kernel in rows])
        tall = np.array([kernel.rows * point.samples or 1.0 for _, point, kernel in rows])
        moved = [kernel.fixed_bytes + kernel.bytes * point.samples for _, point, kernel in rows]
        self.compute = np.stack([flops, flops * (1 + MOST_ROWS / tall)], axis=1)
        self.memory = np.array(moved)

    def guesses(self) -> list[NDArray[np.bool_]]:
        """What may bind each kernel: memory those of the least FLOP a byte, none to all of them."""
        if not self.compute[:, 0].any():
            return [np.zeros(len(self.owner), bool)]
        intensity = self.compute[:, 0] / np.maximum(self.memory, 1.0)
        cuts = np.quantile(intensity, (0.0, 0.25, 0.5, 0.75))
        return [intensity >= cut for cut in cuts] + [np.zeros(len(self.owner), bool)]

    def compute_bound(self, coefficients: Floats) -> NDArray[np.bool_]:
        """For each kernel, whether compute takes longer than memory."""
        made: NDArray[np.bool_] = self.compute @ coefficients[:2] > self.memory * coefficients[2]
        return made

    def _matrix(self, computes: NDArray[np.bool_]) -> Floats:
        """One row a point, each divided by the measured time."""
        columns = np.column_stack(
            [self.compute * computes[:, None], self.memory * ~computes, np.ones(len(computes))]
        )
        matrix: Floats = np.zeros((self.count, 4))
        np.add.at(matrix, self.owner, columns)
        matrix /= self.seconds[:, None]
        return matrix

    def descend(self, computes: NDArray[np.bool_]) -> tuple[float, Floats]:
        """Loss and coefficients from a first guess of what binds each kernel; the best of all rounds."""
        weights = np.ones(self.count)
        best_loss, best = np.inf, np.zeros(4)
        for _ in range(ROUNDS):
            coefficients = _not_negative(self._matrix(computes), weights)
            coefficients = self._unseen(coefficients, computes)
            now = self.compute_bound(coefficients)
            errors = np.abs(self._matrix(now) @ coefficients - 1)
            loss = float(np.where(errors < NEAR, errors**2 / (2 * NEAR), errors - NEAR / 2).sum())
            if loss < best_loss:
                best_loss, best = loss, coefficients
            again = 1 / np.maximum(errors, NEAR)
            if (now == computes).all() and np.allclose(again, weights, rtol=1e-3):
                break
            computes, weights = now, again
        return best_loss, best

    def _unseen(self, coefficients: Floats, computes: NDArray[np.bool_]) -> Floats:
        """The coefficient of a bound that no kernel shows: as slow as possible without showing."""
        compute, memory = self.compute @ coefficients[:2], self.memory * coefficients[2]
        if computes.all() and (self.memory > 0).any():
            seen = self.memory > 0
            coefficients[2] = float((compute[seen] / self.memory[seen]).min())
        if not computes.any() and self.compute[:, 0].any():
            seen = self.compute[:, 0] > 0
            coefficients[0] = float((memory[seen] / self.compute[seen, 0]).min())
        return coefficients

    def rates(self, coefficients: Floats) -> Rates:
        """Coefficients as rates."""
        plain, tall, memory, launch = (float(each) for each in coefficients)
        return Rates(
            flops_per_s=_rate(plain + tall),
            r_half=MOST_ROWS * tall / (plain + tall) if tall else 0.0,
            bytes_per_s=_rate(memory),
            launch_s=launch,
        )


def _rate(seconds: float) -> float:
    return min(1 / seconds, ENDLESS) if seconds > 0 else ENDLESS


def _not_negative(matrix: Floats, weights: Floats) -> Floats:
    """Coefficients >= 0 with the least weighted squares against ones: the best over all sets of columns."""
    columns = [column for column in range(matrix.shape[1]) if matrix[:, column].any()]
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    scaled_matrix = matrix / scale * np.sqrt(weights)[:, None]
    target = np.sqrt(weights)
    gram, right = scaled_matrix.T @ scaled_matrix, scaled_matrix.T @ target
    best: Floats = np.zeros(matrix.shape[1])
    least = float(target @ target)
    for size in range(1, len(columns) + 1):
        for chosen in combinations(columns, size):
            part = np.ix_(chosen, chosen)
            try:
                solved = np.linalg.solve(gram[part], right[list(chosen)])
            except np.linalg.LinAlgError:
                continue
            if (solved < 0).any():
                continue
            loss = float(((scaled_matrix[:, list(chosen)] @ solved - target) ** 2).sum())
            if loss < least * (1 - 1e-9):
                least, best = loss, np.zeros(matrix.shape[1])
                best[list(chosen)] = solved
    best /= scale
    return best
