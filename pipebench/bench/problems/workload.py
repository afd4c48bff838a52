"""Workload: a problem whose regime is still open."""

from dataclasses import dataclass, field

from pipebench.domain.cluster import Cluster
from pipebench.domain.problem import Optimizer, OptimizerSharding, Pins, Problem, Regime, RegimeMode
from pipebench.domain.profile import Precision, Profile


@dataclass(frozen=True, slots=True)
class Workload:
    """Profile, cluster, mini-batch and pins; `problem` adds the regime.

    name: what a suite calls it, of a grid with the values of its lists; empty outside suites. notices: what was
    taken from the profile's file, and what its reader assumed.
    """

    model: str
    profile: Profile
    cluster: Cluster
    mini_batch: int
    optimizer: Optimizer = "none"
    optimizer_sharding: OptimizerSharding = "none"
    gradient_precision: Precision | None = None
    pins: Pins = field(default_factory=Pins)
    name: str = ""
    notices: tuple[str, ...] = ()
    _problems: dict[RegimeMode, Problem] = field(default_factory=dict, init=False, repr=False, compare=False)

    def problem(self, mode: RegimeMode) -> Problem:
        """The problem in one regime; the same object each time, because to hash it takes milliseconds."""
        if mode not in self._problems:
            regime = Regime(
                mode=mode,
                precision=self.profile.precision,
                gradient_precision=self.gradient_precision,
                optimizer=self.optimizer,
                optimizer_sharding=self.optimizer_sharding,
            )
            self._problems[mode] = Problem(
                profile=self.profile,
                cluster=self.cluster,
                mini_batch=self.mini_batch,
                regime=regime,
                pins=self.pins,
            )
        return self._problems[mode]


def default_mini_batch(profile: Profile, cluster: Cluster) -> int:
    """One profiled size: that size. Several: 16 samples a device, rounded up to a multiple of the largest."""
    sizes = profile.on(cluster.devices[0]).micro_batches
    if len(sizes) == 1:
        return sizes[0]
    return -(-16 * cluster.size // sizes[-1]) * sizes[-1]
