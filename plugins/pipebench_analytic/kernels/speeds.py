"""The kernel speeds that ship, by device: devices.toml, and which device type is which."""

import re
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from pipebench.domain.value import Value
from pipebench_analytic.kernels.attention import AttentionSurface, modelled_attention
from pipebench_analytic.kernels.collectives import CollectiveCurves
from pipebench_analytic.kernels.gemm import GemmSurface

KernelPrecision = Literal["bf16", "fp16", "fp8", "fp4"]


class SameChip(NamedTuple):
    """A measured device, and how many times its rates a device with its chip has by the data sheets of both."""

    chip: str
    factor: float = 1.0
    fp4_factor: float = 1.0

    def of(self, precision: str) -> float:
        """The factor in a precision."""
        return self.fp4_factor if precision == "fp4" else self.factor


SAME_CHIP = {
    "GB200": SameChip("B200", 2500 / 2250, 10 / 9),
    "B300": SameChip("B200", fp4_factor=13.5 / 9),
    "GB300": SameChip("B200", 2500 / 2250, 15 / 9),
    "H800": SameChip("H100"),
}
"""Devices whose kernels were not measured. Rates in 4 bits, dense, are 9 PFLOP/s of a B200 and those of NVIDIA's
data sheets of HGX B300, GB200 NVL72 and GB300 NVL72, for one device."""
OTHER_BUILDS = frozenset({"pcie", "nvl", "mig"})
"""Words of a name for a build that has another clock, other memory or other links than the measured one."""


class FitError(Value, frozen=True, kw_only=True):
    """Mean relative error of a surface, by its size and with its sign (above zero: too slow), on `points`."""

    points: int
    mean: float
    signed: float


class Origin(Value, frozen=True, kw_only=True):
    """Where coefficients come from.

    - what: the operation and its limits.
    - source: the public table.
    - points: of the table that were fitted or held back.
    - held_back: errors on shapes that were held back, by which of them (`all`, `large`, …).
    """

    what: str
    source: str
    points: int
    held_back: dict[str, FitError]


class FittedGemm(Value, frozen=True, kw_only=True):
    """A surface of products and where it comes from."""

    origin: Origin
    surface: GemmSurface


class FittedAttention(Value, frozen=True, kw_only=True):
    """A surface of attention and where it comes from."""

    origin: Origin
    surface: AttentionSurface


class FittedCollectives(Value, frozen=True, kw_only=True):
    """Curves of collectives inside a node and where they come from."""

    origin: Origin
    curves: CollectiveCurves


class KernelSpeeds(Value, frozen=True, kw_only=True):
    """What is known of one device: products by precision, attention, collectives inside a node; None: nothing.

    attention_like: the shipped device whose attention is taken, at this device's rates, where none was measured.
    """

    attention_like: str = "A100"
    gemm: dict[str, FittedGemm] = {}
    attention: FittedAttention | None = None
    collectives: FittedCollectives | None = None

    def products(self, precision: KernelPrecision) -> GemmSurface | None:
        """The surface of products in a precision; fp16 runs as bf16 does. None: not known."""
        found = self.gemm.get("bf16" if precision == "fp16" else precision)
        return None if found is None else found.surface

    def at_rates_of(self, same: SameChip) -> "KernelSpeeds":
        """Those of a device with this chip. Modelled attention follows the products, a measured one stays."""
        gemm = {
            precision: replace(fitted, surface=fitted.surface.faster(same.of(precision)))
            if same.of(precision) != 1
            else fitted
            for precision, fitted in self.gemm.items()
        }
        return replace(self, gemm=gemm)

    def fused_attention(self) -> AttentionSurface | None:
        """Forward of fused attention in 16 bits: fitted, or modelled from the device's products. None: neither.

        A modelled one has what `attention_like` reaches, faster by the ratio of products and of memory.
        """
        if self.attention is not None:
            return self.attention.surface
        products, like = self.products("bf16"), shipped_speeds()[self.attention_like]
        base = like.products("bf16")
        if products is None or base is None or like.attention is None:
            return None
        rates = products.sustained_flops_s / base.sustained_flops_s
        made = modelled_attention(like.attention.surface, rates, products.weight_bytes_s / base.weight_bytes_s)
        return replace(made, multiprocessors=products.multiprocessors)


class _ShippedFile(Value, frozen=True, kw_only=True):
    sources: dict[str, str]
    devices: dict[str, KernelSpeeds]


@cache
def shipped_speeds() -> dict[str, KernelSpeeds]:
    """Kernel speeds by device: A100, H100, …"""
    data = files("pipebench_analytic.kernels").joinpath("devices.toml").read_bytes()
    return msgspec.toml.decode(data, type=_ShippedFile).devices


def kernel_speeds(device_type: str) -> KernelSpeeds | None:
    """The speeds of a device type by its name, such as A100-SXM4-80GB or a100-80gb; None: not measured.

    Those of a device that was not measured, but has the chip of a measured one, are that one's, at its own rate.
    PCIe and NVL builds of the same name are other devices. L40S has no other build.
    """
    known = _known(device_type)
    if known is None:
        return None
    same = SAME_CHIP.get(known)
    return shipped_speeds()[known] if same is None else shipped_speeds()[same.chip].at_rates_of(same)


def measured_elsewhere(device_type: str) -> str:
    """Where the kernels of a device type come from, in words; empty: they were measured on it."""
    known = _known(device_type)
    if known is None:
        return f"kernels of {device_type} are not calibrated: peak rates"
    return f"kernels of {device_type} are those measured on {SAME_CHIP[known].chip}" if known in SAME_CHIP else ""


def _known(device_type: str) -> str | None:
    """The word of the name that is a measured device, or one that has its chip."""
    words = set(re.split(r"[^a-z0-9]+", device_type.lower()))
    known = [name for name in (*shipped_speeds(), *SAME_CHIP) if name.lower() in words]
    return known[0] if len(known) == 1 and (known == ["L40S"] or not words & OTHER_BUILDS) else None
