"""Seconds of one matrix product, m x k by k x n, from a few coefficients of a device and a precision.

A product is cut into tiles of its output. The multiprocessors work on them in waves; a last wave that is not full
takes part of the time of a full one. A product with few tiles and a long k is cut along k as well. The library
picks the tile shape and the cut; here the fastest is taken. A device at work on all multiprocessors runs slower
than one tile does (power), the more so the more bytes it moves. Bytes take time too, and overlap in part.
"""

from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from pipebench.algorithms.descent import Box, Floats, fit_in_box
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value

TILES = (
    (256, 256),
    (256, 128),
    (128, 256),
    (128, 128),
    (128, 64),
    (64, 128),
    (64, 64),
    (32, 64),
    (64, 32),
    (16, 64),
)
"""Rows and columns of the output that one multiprocessor computes at once."""
SPLITS = (1, 2, 4, 8, 16)
"""Parts into which k is cut."""
SHORTEST_PART = 64
"""Of k: a shorter one takes the same time, so that no cut is worth it."""
SHARPNESS = 8.0
"""Of the larger of tile time and sustained rate: a norm of this order in place of a maximum."""
OUTPUT_BYTES = 2
PARTIAL_BYTES = 4
"""Of one element of a part's sum."""
CONVERT_BYTES = 3
"""Of one element that is read in 16 bits and written in 8, or in fewer and a scale."""

LARGE_M = 512
"""Training has that many rows and more."""
LARGE_FLOPS = 2e10
LARGE_WEIGHT = 6.0
LARGE_FLOPS_WEIGHT = 1.5
MOST_POINTS = 4000
FEWEST_POINTS = 100
NEAR = 0.1
JUMPS = 8


@dataclass(frozen=True, slots=True)
class Chip:
    """What a data sheet says: multiprocessors, dense FLOP/s in the precision, bytes/s of memory."""

    multiprocessors: int
    peak_flops: float
    bytes_s: float


@dataclass(frozen=True, slots=True)
class GemmTable:
    """Measured products: one element of each array for each. seconds: of one product."""

    m: Floats
    n: Floats
    k: Floats
    seconds: Floats

    @property
    def flops(self) -> Floats:
        """FLOP of each product."""
        return 2 * self.m * self.n * self.k

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "GemmTable":
        """The chosen products."""
        return GemmTable(self.m[chosen], self.n[chosen], self.k[chosen], self.seconds[chosen])


class GemmSurface(Value, frozen=True, kw_only=True):
    """Coefficients of one device and precision.

    - multiprocessors: of the device.
    - element_bytes: of one element of both factors (2: bf16 and fp16, 1: fp8, 0.5625: fp4 with its scales).
    - fixed_s: seconds that each product takes besides all else.
    - weight_bytes_s: bytes/s of the k x n factor, which comes from memory.
    - activation_bytes_s: bytes/s of the m x k factor and the output, which the cache may hold.
    - cache_bytes: bytes of these beyond which they take the time of memory as well.
    - overlap: order of the norm that joins time of products and of bytes (1: sum, endless: maximum).
    - sustained_flops_s: FLOP/s of the whole device with few bytes.
    - slowdown, slowdown_bytes: the share by which many bytes slow it down, and the bytes at half of that.
    - wave_share: how much of a full wave a wave takes that is not full (1: all of it, 0: as much as it is full).
    - split_s, split_bytes_s: seconds of a cut along k, and bytes/s of its partial sums.
    - convert_elements_s: elements/s of the conversion of the m x k factor to fewer bits (0: none).
    - convert_miss_elements_s: the same for what the cache does not hold, on top.
    - tile_flops_s: FLOP/s of one multiprocessor, by tile shape.
    - tile_s: seconds of a tile besides its products, by tile shape.
    """

    multiprocessors: int
    element_bytes: float
    fixed_s: float
    weight_bytes_s: float
    activation_bytes_s: float
    cache_bytes: float
    overlap: float
    sustained_flops_s: float
    slowdown: float
    slowdown_bytes: float
    wave_share: float
    split_s: float
    split_bytes_s: float
    convert_elements_s: float = 0.0
    convert_miss_elements_s: float = 0.0
    tile_flops_s: tuple[float, ...]
    tile_s: tuple[float, ...]

    def seconds(self, m: ArrayLike, n: ArrayLike, k: ArrayLike) -> Floats:
        """Seconds of each product. m, n, k: numbers or arrays that broadcast; the result has their shape.

        It grows with m, with n and with k, and is never below FLOP / sustained_flops_s.
        """
        rows, columns, inner = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (m, n, k)))
        return _seconds(
            np.log(self._coefficients()), rows, columns, inner, self.multiprocessors, self.element_bytes
        )

    def faster(self, factor: float) -> "GemmSurface":
        """The surface of the same chip at a higher clock: so many times the FLOP/s, memory as it is."""
        return replace(
            self,
            sustained_flops_s=factor * self.sustained_flops_s,
            tile_flops_s=tuple(factor * rate for rate in self.tile_flops_s),
        )

    def _coefficients(self) -> Floats:
        single = [max(getattr(self, name), TINY) for name in NAMES]
        return np.array([*single, *self.tile_flops_s, *self.tile_s])


NAMES = (
    "fixed_s",
    "weight_bytes_s",
    "activation_bytes_s",
    "cache_bytes",
    "overlap",
    "sustained_flops_s",
    "slowdown",
    "slowdown_bytes",
    "wave_share",
    "split_s",
    "split_bytes_s",
    "convert_elements_s",
    "convert_miss_elements_s",
)
TINY = 1e-300
"""In place of a rate of zero, whose logarithm is not finite: no such kernel."""


def _seconds(logs: Floats, m: Floats, n: Floats, k: Floats, multiprocessors: int, element_bytes: float) -> Floats:
    """logs: logarithms of the coefficients in the order of NAMES, then tile_flops_s and tile_s."""
    known = dict(zip(NAMES, np.exp(logs[: len(NAMES)]), strict=True))
    rates, overheads = np.exp(logs[len(NAMES) :]).reshape(2, len(TILES))
    weights = element_bytes * k * n
    activations = element_bytes * m * k + OUTPUT_BYTES * m * n
    split = known["split_s"], PARTIAL_BYTES * m * n / known["split_bytes_s"]
    tiled = np.full(m.shape, np.inf)
    for (height, width), rate, overhead in zip(TILES, rates, overheads, strict=True):
        tiles = np.ceil(m / height) * np.ceil(n / width) / multiprocessors
        for parts in SPLITS:
            waves = tiles * parts
            waves = np.maximum(1, waves + known["wave_share"] * (np.ceil(waves) - waves))
            length = np.maximum(SHORTEST_PART, k / parts) if parts > 1 else k
            spent = waves * (2 * height * width * length / rate + overhead)
            if parts > 1:
                spent += split[0] + parts * split[1]
            tiled = np.minimum(tiled, spent)
    crowd = (weights + activations) / known["slowdown_bytes"]
    sustained = 2 * m * n * k / known["sustained_flops_s"] * (1 + known["slowdown"] * crowd / (1 + crowd))
    products = _norm(tiled, sustained, SHARPNESS)
    misses = np.maximum(0, activations - known["cache_bytes"])
    moved = activations / known["activation_bytes_s"] + (weights + misses) / known["weight_bytes_s"]
    found = known["fixed_s"] + _norm(products, moved, known["overlap"])
    if known["convert_elements_s"] > 1:
        beyond = np.maximum(0, m * k - known["cache_bytes"] / CONVERT_BYTES)
        found = found + m * k / known["convert_elements_s"] + beyond / known["convert_miss_elements_s"]
    return np.asarray(found)


def _norm(one: Floats, other: Floats, order: float) -> Floats:
    """Between the sum (order 1) and the larger of both (order endless), without overflow."""
    large, small = np.maximum(one, other), np.minimum(one, other)
    return np.asarray(large * (1 + (small / large) ** order) ** (1 / order))


def fit_gemm(table: GemmTable, chip: Chip, *, element_bytes: float = 2, jumps: int = JUMPS) -> GemmSurface:
    """The surface of these products, by least squares on the logarithm of the ratio; the same each time.

    Products of LARGE_M rows and more count more, as training has these. element_bytes: 1 and less fits
    a conversion to these bits too. jumps: how often the search starts again; fewer are quicker.
    Raises PipebenchError for fewer than FEWEST_POINTS products.
    """
    if len(table.m) < FEWEST_POINTS:
        raise PipebenchError(f"{len(table.m)} matrix products were measured, a fit needs {FEWEST_POINTS} or more")
    chance = np.random.default_rng(0)
    weights = np.where(table.m >= LARGE_M, LARGE_WEIGHT, 1.0)
    weights *= np.where(table.flops > LARGE_FLOPS, LARGE_FLOPS_WEIGHT, 1.0)
    count = min(MOST_POINTS, len(table.m))
    used = table.part(chance.choice(len(table.m), count, replace=False, p=weights / weights.sum()))
    box = _box(chip, element_bytes)
    size = chip.multiprocessors, element_bytes

    def residuals(logs: Floats) -> Floats:
        return np.asarray(np.log(_seconds(logs, used.m, used.n, used.k, *size) / used.seconds))

    found = np.exp(fit_in_box(residuals, box, near=NEAR, jumps=jumps))
    single = dict(zip(NAMES, (float(f"{each:.4g}") for each in found), strict=False))
    tiles = [float(f"{each:.4g}") for each in found[len(NAMES) :]]
    if element_bytes > 1:
        single |= {"convert_elements_s": 0.0, "convert_miss_elements_s": 0.0}
    return GemmSurface(
        multiprocessors=chip.multiprocessors,
        element_bytes=element_bytes,
        tile_flops_s=tuple(tiles[: len(TILES)]),
        tile_s=tuple(tiles[len(TILES) :]),
        **single,
    )


def _box(chip: Chip, element_bytes: float) -> Box:
    """Where the search starts and what a device can do: no rate above the data sheet's but the cache's."""
    one, wide = chip.peak_flops / chip.multiprocessors, chip.bytes_s
    converts = element_bytes <= 1
    ranges = {
        "fixed_s": (3e-6, 3e-7, 3e-5),
        "weight_bytes_s": (0.8 * wide, 0.3 * wide, wide),
        "activation_bytes_s": (1.5 * wide, 0.5 * wide, 8 * wide),
        "cache_bytes": (5e7, 5e6, 2e8),
        "overlap": (2.5, 1.0, 12.0),
        "sustained_flops_s": (0.85 * chip.peak_flops, 0.4 * chip.peak_flops, chip.peak_flops),
        "slowdown": (0.1, 1e-3, 1.0),
        "slowdown_bytes": (1e8, 1e6, 3e9),
        "wave_share": (0.8, 0.01, 1.0),
        "split_s": (1e-6, 1e-7, 2e-5),
        "split_bytes_s": (wide, wide / 20, 100 * wide),
        "convert_elements_s": (wide / 3, wide / 200, 10 * wide) if converts else (TINY, TINY, TINY),
        "convert_miss_elements_s": (wide / 3, wide / 200, 10 * wide) if converts else (TINY, TINY, TINY),
    }
    shares = (0.8, 0.85, 0.85, 0.8, 0.7, 0.7, 0.55, 0.35, 0.35, 0.2)
    rows = [ranges[name] for name in NAMES]
    rows += [(share * one, 0.02 * one, one) for share in shares]
    rows += [(1.5e-6, 1e-8, 3e-5)] * len(TILES)
    start, low, high = np.log(np.array(rows)).T
    return Box(start, low, high)
