"""Forward seconds of fused attention, which keeps the scores on the multiprocessors.

A multiprocessor takes a block of queries of one head through all keys that they see. With few blocks the longest
one decides. Queries, keys, values and the output pass memory once, and each token has its own overhead.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipebench.algorithms.descent import Box, Floats, fit_in_box
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench_analytic.kernels.gemm import TINY, Chip

QUERIES = 128
"""Of one block."""
ELEMENT_BYTES = 2
FEWEST_POINTS = 30
MOST_POINTS = 4000
NEAR = 0.1
JUMPS = 2


@dataclass(frozen=True, slots=True)
class AttentionTable:
    """Measured forwards of causal attention: one element of each array for each."""

    batch: Floats
    sequence: Floats
    heads: Floats
    kv_heads: Floats
    head_size: Floats
    seconds: Floats

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "AttentionTable":
        """The chosen forwards."""
        return AttentionTable(*(getattr(self, name)[chosen] for name in self.__slots__))

    @property
    def flops(self) -> Floats:
        """FLOP of each forward: two products for each pair of a query and a key that it sees."""
        pairs = self.sequence * (self.sequence + 1) / 2
        return 4 * self.batch * self.heads * self.head_size * pairs


class AttentionSurface(Value, frozen=True, kw_only=True):
    """Coefficients of one device, in 16 bits.

    - multiprocessors: of the device.
    - fixed_s: seconds of each forward besides all else.
    - flops_s: FLOP/s of the whole device with endless head size.
    - head_half: head size at which half of that is reached.
    - bytes_s: bytes/s of queries, keys, values and output.
    - token_s: seconds of each token besides its bytes.
    - block_s: seconds of one block of queries on one multiprocessor besides its keys.
    - overlap: order of the norm that joins the longest block and the mean of the multiprocessors.
    - modelled: True where no table of this device was fitted.
    """

    multiprocessors: int
    fixed_s: float
    flops_s: float
    head_half: float
    bytes_s: float
    token_s: float
    block_s: float
    overlap: float
    modelled: bool = False

    def seconds(
        self,
        batch: ArrayLike,
        sequence: ArrayLike,
        heads: ArrayLike,
        kv_heads: ArrayLike,
        head_size: ArrayLike,
        *,
        causal: bool = True,
        window: int | None = None,
    ) -> Floats:
        """Forward seconds; numbers or arrays that broadcast. kv_heads: heads of keys and values.

        causal: a query sees the keys up to its own. Not causal is modelled: the tables have causal attention only.
        window: it sees the last ones only. That is modelled too: a block of queries works on whole keys from the
        first one that any of its queries sees.
        """
        given = (batch, sequence, heads, kv_heads, head_size)
        arrays = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in given))
        logs = np.log([max(getattr(self, name), TINY) for name in NAMES])
        return _seconds(logs, self.multiprocessors, *arrays, causal=causal, window=window)


NAMES = ("fixed_s", "flops_s", "head_half", "bytes_s", "token_s", "block_s", "overlap")


def _seconds(
    logs: Floats,
    multiprocessors: int,
    batch: Floats,
    sequence: Floats,
    heads: Floats,
    kv_heads: Floats,
    head_size: Floats,
    *,
    causal: bool,
    window: int | None = None,
) -> Floats:
    fixed, flops_s, half, bytes_s, token, block_s, order = np.exp(logs)
    blocks = np.ceil(sequence / QUERIES)
    keys = (sequence + np.minimum(QUERIES, sequence)) / 2 if causal else sequence
    longest_keys = sequence
    if window is not None:
        longest_keys = np.minimum(sequence, window + QUERIES)
        # Blocks whose keys grow with their place, and then those with as many each; all grow: the mean above.
        keys = (
            longest_keys * (longest_keys + np.minimum(QUERIES, sequence)) / 2
            + (sequence - longest_keys) * longest_keys
        ) / sequence
    rate = flops_s / multiprocessors * head_size / (head_size + half)
    key_s = 4 * np.minimum(QUERIES, sequence) * head_size / rate
    mean = batch * heads * blocks * (key_s * keys + block_s) / multiprocessors
    longest = key_s * longest_keys + block_s
    large, small = np.maximum(mean, longest), np.minimum(mean, longest)
    products = large * (1 + (small / large) ** order) ** (1 / order)
    tokens = batch * sequence
    moved = 2 * ELEMENT_BYTES * tokens * (heads + kv_heads) * head_size
    return np.asarray(fixed + products + moved / bytes_s + tokens * token)


def fit_attention(table: AttentionTable, chip: Chip, *, head_half: float | None = None) -> AttentionSurface:
    """The surface of these causal forwards. head_half: given where the table has one head size only.

    Raises PipebenchError for fewer than FEWEST_POINTS forwards, or one head size and no head_half.
    """
    if len(table.seconds) < FEWEST_POINTS:
        raise PipebenchError(f"{len(table.seconds)} attentions were measured, a fit needs {FEWEST_POINTS} or more")
    if head_half is None and len(np.unique(table.head_size)) < 2:
        raise PipebenchError("attention has one head size", "measure a second one, such as 64 and 128")
    ranges = {
        "fixed_s": (1e-5, 1e-6, 1e-4),
        "flops_s": (0.6 * chip.peak_flops, 0.1 * chip.peak_flops, chip.peak_flops),
        "head_half": (20.0, 0.1, 200.0) if head_half is None else (head_half,) * 3,
        "bytes_s": (0.5 * chip.bytes_s, 0.05 * chip.bytes_s, chip.bytes_s),
        "token_s": (1e-10, 1e-13, 1e-7),
        "block_s": (1e-6, 1e-8, 2e-5),
        "overlap": (2.0, 1.0, 12.0),
    }
    start, low, high = np.log(np.array([ranges[name] for name in NAMES])).T
    count = min(MOST_POINTS, len(table.seconds))
    used = table.part(np.random.default_rng(0).choice(len(table.seconds), count, replace=False))
    shape = used.batch, used.sequence, used.heads, used.kv_heads, used.head_size

    def residuals(logs: Floats) -> Floats:
        return np.asarray(np.log(_seconds(logs, chip.multiprocessors, *shape, causal=True) / used.seconds))

    found = np.exp(fit_in_box(residuals, Box(start, low, high), near=NEAR, jumps=JUMPS))
    rounded: dict[str, Any] = {name: float(f"{each:.4g}") for name, each in zip(NAMES, found, strict=True)}
    return AttentionSurface(multiprocessors=chip.multiprocessors, **rounded)


def modelled_attention(like: AttentionSurface, products: float, memory: float) -> AttentionSurface:
    """The surface of a device without a table: that of another one, with faster or slower products and bytes.

    products: this device's FLOP/s in large matrix products over the other's. memory: the same of bytes/s.
    """
    return AttentionSurface(
        multiprocessors=like.multiprocessors,
        fixed_s=like.fixed_s,
        flops_s=like.flops_s * products,
        head_half=like.head_half,
        bytes_s=like.bytes_s * memory,
        token_s=like.token_s,
        block_s=like.block_s / products,
        overlap=like.overlap,
        modelled=True,
    )
