"""Seconds of one kernel on one device type."""

from dataclasses import dataclass

from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Precision
from pipebench_analytic.plugin import AnalyticOptions


@dataclass(frozen=True, slots=True)
class Kernel:
    """Work of one kernel: FLOP and bytes for each sample, bytes whatever the micro-batch (weights).

    rows: rows of the contraction for each sample; 0: no contraction, the efficiency curve does not apply.
    """

    flops: float
    bytes: float
    fixed_bytes: float = 0.0
    rows: float = 0.0


class Roofline:
    """max(FLOP / reached rate, bytes / memory bandwidth) + launch overhead."""

    def __init__(self, device: DeviceType, precision: Precision, options: AnalyticOptions) -> None:
        """Raises PipebenchError when the device type lacks a rate that is needed."""
        if precision not in device.peak_flops:
            raise PipebenchError(
                f"device type {device.name!r} has no peak rate in {precision}",
                f"it has {', '.join(sorted(device.peak_flops)) or 'none'}",
            )
        if device.peak_flops[precision] <= 0 or device.memory_bandwidth_bytes_s <= 0:
            raise PipebenchError(
                f"device type {device.name!r}: its {precision} rate or its memory bandwidth is zero",
                "the analytic profiler needs both",
            )
        self.device = device
        self.options = options
        self._reachable = device.peak_flops[precision] * options.efficiency

    def seconds(self, kernel: Kernel | None, samples: int) -> float:
        """Time at a micro-batch of `samples`; nothing to run costs nothing."""
        if kernel is None:
            return 0.0
        rate = self._reachable
        if kernel.rows:
            rows = kernel.rows * samples
            rate *= rows / (rows + self.options.r_half)
        compute = kernel.flops * samples / rate
        memory = (kernel.fixed_bytes + kernel.bytes * samples) / self.device.memory_bandwidth_bytes_s
        return max(compute, memory) + self.options.launch_s

    def all_gather_seconds(self, bytes_per_sample: float, samples: int, devices: int) -> float:
        """Ring all-gather inside a node: (d-1)/d of the whole passes each device; 0 bytes cost nothing."""
        if bytes_per_sample == 0:
            return 0.0
        share = (devices - 1) / devices
        return share * bytes_per_sample * samples / self.device.peer_bandwidth_bytes_s + self.options.launch_s

    def all_reduce_seconds(self, bytes_per_sample: float, samples: int, devices: int) -> float:
        """Ring all-reduce inside a node: twice the bytes of the all-gather."""
        return self.all_gather_seconds(2 * bytes_per_sample, samples, devices)
