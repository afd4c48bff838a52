"""Seconds of one kernel on one device type, to twelve significant digits."""

from dataclasses import dataclass
from typing import Protocol

from pipebench.domain.calibration import Direction
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Precision
from pipebench_analytic.plugin import AnalyticOptions


def significant(number: float) -> float:
    """`number` rounded to twelve significant digits."""
    return float(f"{number:.12g}")


@dataclass(frozen=True, slots=True)
class Kernel:
    """The work of one kernel: FLOP and bytes for each sample, and bytes whatever the micro-batch (weights).

    rows: rows of the contraction for each sample; 0: no contraction, the efficiency curve does not apply.
    kind, direction: of the operator, for fitted rates; empty: those of all kinds together.
    """

    flops: float
    bytes: float
    fixed_bytes: float = 0.0
    rows: float = 0.0
    kind: str = ""
    direction: Direction = "forward"


@dataclass(frozen=True, slots=True)
class Rates:
    """What kernels reach: FLOP/s with endless rows, rows at half of that, bytes/s, seconds of overhead."""

    flops_per_s: float
    r_half: float
    bytes_per_s: float
    launch_s: float

    def seconds(self, kernel: Kernel, samples: int) -> float:
        """The larger of compute and memory time, and the overhead."""
        rate = self.flops_per_s
        if kernel.rows:
            rows = kernel.rows * samples
            rate *= rows / (rows + self.r_half)
        compute = kernel.flops * samples / rate
        memory = (kernel.fixed_bytes + kernel.bytes * samples) / self.bytes_per_s
        return max(compute, memory) + self.launch_s


class RatesByKind(Protocol):
    """Rates of kinds that were fitted to measured times."""

    def rates_of(self, kernel: Kernel) -> Rates:
        """Those of the kernel's kind and direction, else of all kinds like it."""


class Roofline:
    """max(FLOP / reached rate, bytes / memory bandwidth) + launch overhead."""

    def __init__(
        self, device: DeviceType, precision: Precision, options: AnalyticOptions, fitted: RatesByKind | None = None
    ) -> None:
        """fitted: rates in place of the device's. Raises PipebenchError when the device lacks a rate."""
        self.device = device
        self.options = options
        self._fitted = fitted
        if fitted is not None:
            return
        if precision not in device.peak_flops:
            raise PipebenchError(
                f"device type {device.name!r} has no peak rate in {precision}",
                f"it has {', '.join(sorted(device.peak_flops)) or 'none'}: name one of them with --precision, or "
                "a cluster of other devices with --cluster",
            )
        if device.peak_flops[precision] <= 0 or device.memory_bandwidth_bytes_s <= 0:
            raise PipebenchError(
                f"device type {device.name!r}: its {precision} rate or its memory bandwidth is zero",
                "the analytic profiler needs both",
            )
        reachable = device.peak_flops[precision] * options.efficiency
        self._rates = Rates(reachable, options.r_half, device.memory_bandwidth_bytes_s, options.launch_s)

    def seconds(self, kernel: Kernel | None, samples: int) -> float:
        """Time at a micro-batch of `samples`; nothing to run costs nothing."""
        if kernel is None:
            return 0.0
        rates = self._rates if self._fitted is None else self._fitted.rates_of(kernel)
        return rates.seconds(kernel, samples)

    def all_gather_seconds(self, bytes_per_sample: float, samples: int, devices: int) -> float:
        """Ring all-gather inside a node: (d-1)/d of the whole passes each device; 0 bytes cost nothing."""
        if bytes_per_sample == 0:
            return 0.0
        share = (devices - 1) / devices
        return share * bytes_per_sample * samples / self.device.peer_bandwidth_bytes_s + self.options.launch_s

    def all_reduce_seconds(self, bytes_per_sample: float, samples: int, devices: int) -> float:
        """Ring all-reduce inside a node: twice the bytes of the all-gather."""
        return self.all_gather_seconds(2 * bytes_per_sample, samples, devices)
