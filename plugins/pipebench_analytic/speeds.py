"""What kernels reach on one device type: products, attention, streams through memory, all-reduces, launches.

Measured surfaces where the tables have the device (`kernels`), else peak rates and an efficiency that grows with
rows.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, cast, get_args

from msgspec.structs import replace

from pipebench.costs.formula import Formula
from pipebench.costs.shapes.attention import seen_pairs
from pipebench.domain.cluster import DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Framework
from pipebench.domain.profile import ELEMENT_BYTES, NarrowPrecision, Precision
from pipebench.domain.tuning import USUAL_REACH, Reach
from pipebench_analytic.context import hop_s
from pipebench_analytic.exchange import all_to_all_s
from pipebench_analytic.kernels.gemm import GemmSurface
from pipebench_analytic.kernels.speeds import KernelPrecision, KernelSpeeds, kernel_speeds

ROOFLINE_SHARE, ROWS_HALF, PRODUCT_S = 0.75, 128.0, 3e-6
"""Where no table has the device: share of the peak rate with endless rows, rows of half of it, the start."""
HOPPER, FLASH_2_SHARE = ("H100", "H200", "H800", "H20-"), 0.35
"""Devices whose instructions FlashAttention-2 does not use, and the share of their peak rate that it reaches (Shah
et al. 2024, FlashAttention-3, section 1)."""
NETWORK_SHARE = 0.95
"""Share of a network's bandwidth that tensor-parallel ranks of several nodes reach; 0.6 to 0.95 was allowed."""


@lru_cache(maxsize=2**16)
def _measured_product_s(surface: GemmSurface, m: int, n: int, k: int) -> float:
    """Kept beyond one profile, as a fit of other constants asks for the same products."""
    return float(surface.seconds(m, n, k))


def _with_own(shipped: KernelSpeeds, own: KernelSpeeds | None) -> KernelSpeeds:
    """What a user measured, and what ships where the user's table has nothing."""
    if own is None:
        return shipped
    return KernelSpeeds(
        gemm=shipped.gemm | own.gemm,
        attention=own.attention or shipped.attention,
        collectives=own.collectives or shipped.collectives,
    )


class Speeds:
    """Seconds of kernels on one device type under a framework."""

    def __init__(
        self,
        device: DeviceType,
        precision: Precision,
        framework: Framework,
        links: Sequence[LinkLevel] = (),
        layer_products: Literal["", NarrowPrecision] = "",
        reach: Reach = USUAL_REACH,
        own: KernelSpeeds | None = None,
    ) -> None:
        """links: of the cluster, for ranks in several nodes. layer_products: their precision, where it is another.
        reach: what kernels reach of the rates. own: speeds of a user's own table, before those that ship.

        Raises PipebenchError for a device without rates, or without measured products of that precision.
        """
        if not device.peak_flops.get(precision) or device.memory_bandwidth_bytes_s <= 0:
            raise PipebenchError(
                f"device type {device.name!r} has no peak rate in {precision}, or no memory bandwidth",
                f"it has {', '.join(sorted(device.peak_flops)) or 'none'}: name one of them with --precision, or "
                "a cluster of other devices with --cluster",
            )
        self._peak = device.peak_flops[precision]
        self._stream_bytes_s = reach.stream_share * device.memory_bandwidth_bytes_s
        self._element_bytes = ELEMENT_BYTES[precision]
        self._device, self._links, self._reach = device, tuple(links), reach
        tables = _with_own(kernel_speeds(device.name) or KernelSpeeds(), own)
        known = precision in get_args(KernelPrecision)
        self._products = tables.products(cast(KernelPrecision, precision)) if known else None
        self._narrow = tables.products(layer_products) if layer_products else None
        if layer_products and self._narrow is None:
            has = ", ".join(sorted(tables.gemm)) or "none"
            raise PipebenchError(
                f"device type {device.name!r} has no measured products in {layer_products}",
                f"it has those in {has}: leave products= out, or name another device",
            )
        self._attention = tables.fused_attention() if precision in ("fp16", "bf16") else None
        second = framework.flash_generation == 2 and device.name.startswith(HOPPER)
        self._attention_flops = FLASH_2_SHARE * self._peak if second else math.inf
        self._curves = None if tables.collectives is None else tables.collectives.curves
        self.launch_s, self.skew_s = framework.launch_s, framework.skew_s
        self.overlaps = framework.tensor_overlap
        self.product_s = lru_cache(maxsize=None)(self._product_s)
        self.layer_product_s = self.product_s if self._narrow is None else self._narrow_product_s
        self.all_reduce_s = lru_cache(maxsize=None)(self._all_reduce_s)

    def stream_s(self, size_bytes: float) -> float:
        """A kernel that moves so many bytes through memory."""
        return size_bytes / self._stream_bytes_s

    def _product_s(self, m: int, n: int, k: int) -> float:
        """An m x k times k x n product."""
        return self._reach.product_factor * self._plain_product_s(m, n, k)

    def _plain_product_s(self, m: int, n: int, k: int) -> float:
        if self._products is not None:
            return _measured_product_s(self._products, m, n, k)
        rate = ROOFLINE_SHARE * self._peak * m / (m + ROWS_HALF)
        return (
            max(2.0 * m * n * k / rate, self.stream_s(self._element_bytes * (m * k + k * n + m * n))) + PRODUCT_S
        )

    def _narrow_product_s(self, m: int, n: int, k: int) -> float:
        """The same in fewer bits, with the conversion of one factor."""
        assert self._narrow is not None
        return self._reach.product_factor * _measured_product_s(self._narrow, m, n, k)

    def batched_product_s(self, flops: float, size_bytes: float) -> float:
        """The products of all heads, in one kernel."""
        return max(flops / (self._reach.batched_share * self._peak), self.stream_s(size_bytes))

    def attention_s(
        self,
        samples: int,
        sequence: int,
        heads: float,
        kv_heads: float,
        head: float,
        causal: bool,
        window: int = 0,
        chunk: int = 0,
    ) -> float:
        """The forward of fused attention. The measured kernels are of the newest generation on the device.

        head: width of a head, of keys and of values in the mean. window: of the last keys that a query sees, 0:
        all. chunk: of parts of the sequence that do not see each other, 0: one.
        """
        if chunk and chunk < sequence:
            whole, rest = divmod(sequence, chunk)
            parts = [(samples * whole, chunk), *([(samples, rest)] if rest else [])]
            return sum(self.attention_s(each, tokens, heads, kv_heads, head, causal) for each, tokens in parts)
        pairs = seen_pairs(sequence, window) if causal else sequence**2
        flops = 4.0 * samples * heads * pairs * head
        if self._attention is not None and causal:
            known = self._attention.seconds(samples, sequence, heads, kv_heads, head, window=window or None)
            return max(float(known), flops / self._attention_flops)
        moved = self._element_bytes * samples * sequence * head * (2 * heads + 2 * kv_heads)
        return max(flops / min(0.5 * self._peak, self._attention_flops), self.stream_s(moved)) + PRODUCT_S

    def _all_reduce_s(self, size_bytes: float, ways: int) -> float:
        """An all-reduce over consecutive devices; in one node by its measured curve where there is one."""
        if ways == 1 or size_bytes == 0:
            return 0.0
        crossed = [level for level in self._links if level.group < ways]
        known = self._curves.seconds("all_reduce", ways, size_bytes) if self._curves and not crossed else None
        if known is not None:
            return float(known)
        if not crossed or len(crossed) == len(self._links):
            share = 2 * (ways - 1) / ways
            return share * size_bytes / self._device.peer_bandwidth_bytes_s + 8e-6
        level = self._network(len(crossed))
        return Formula.all_reduce_ns(level, round(size_bytes), ways) / 1e9

    def all_to_all_s(self, size_bytes: float, ranks: int) -> float:
        """What ranks that share out experts wait for while they exchange tokens."""
        return all_to_all_s(size_bytes, ranks, self._links, self._all_to_all_inside_s, NETWORK_SHARE)

    def _all_to_all_inside_s(self, size_bytes: float, ranks: int) -> float:
        """In one node, by its measured curve where there is one."""
        known = self._curves.seconds("all_to_all", ranks, size_bytes) if self._curves else None
        return self.all_reduce_s(size_bytes, ranks) / 2 if known is None else float(known)

    def hop_s(self, size_bytes: float, ranks: int, ways: int) -> float:
        """What one of so many ranks that share out a sequence takes to send something to the next one. ways: of
        tensor parallelism, whose devices have a ring each.
        """
        return hop_s(size_bytes, ranks, ways, self._links, self.all_reduce_s, NETWORK_SHARE)

    def _network(self, position: int) -> LinkLevel:
        """The link level of a ring that leaves each group over the links of all its devices."""
        level, inner = self._links[position], self._links[position - 1]
        rate = level.shared_bandwidth_bytes_s or inner.group * level.bandwidth_bytes_s
        return replace(level, bandwidth_bytes_s=min(NETWORK_SHARE * rate, inner.bandwidth_bytes_s), latency_s=0.0)
