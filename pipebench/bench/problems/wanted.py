"""One workload as it is asked for, on the command line or by a suite: names and texts, nothing loaded yet."""

from dataclasses import dataclass

from pipebench.defaults import CLUSTER, PROFILER
from pipebench.domain.cluster import LinkMode
from pipebench.domain.problem import Optimizer, OptimizerSharding, Recompute
from pipebench.domain.profile import Precision
from pipebench.hooks.syntax import Reference

DEFAULT_DEVICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A model, profiled by `profiler`, or a profile, on a cluster; quantities as on the command line.

    mini_batch_per_device: times the devices, in place of mini_batch; both None: `default_mini_batch`.
    precision: of a model, None: fp32; a profile has its own. notes: what was assumed in reading a model's file.
    """

    name: str = ""
    notes: tuple[str, ...] = ()
    model: Reference | None = None
    profile: Reference | None = None
    profiler: str = PROFILER
    cluster: str = CLUSTER
    devices: int = DEFAULT_DEVICES
    memory: str | None = None
    bandwidth: str | None = None
    link_mode: LinkMode | None = None
    mini_batch: int | None = None
    mini_batch_per_device: int | None = None
    micro_batch: int | None = None
    tp: int | None = None
    dp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    recompute: Recompute | None = None
    reserve: float = 0.0
    precision: Precision | None = None
    gradient_precision: Precision | None = None
    optimizer: Optimizer = "none"
    optimizer_sharding: OptimizerSharding = "none"

    @property
    def samples(self) -> int | None:
        """The mini-batch that is said, None where it is not."""
        if self.mini_batch_per_device is not None:
            return self.mini_batch_per_device * self.devices
        return self.mini_batch
