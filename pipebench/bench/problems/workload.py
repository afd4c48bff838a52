"""Workload: a problem whose regime is still open."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from pipebench.domain.cluster import Cluster
from pipebench.domain.problem import Pins, Problem, Regime, RegimeMode
from pipebench.domain.profile import Profile


@dataclass(frozen=True, slots=True)
class Workload:
    """A problem in one regime, with the name of its model; `problem` gives it in any regime.

    name: what a suite calls it, of a grid with the values of its lists; empty outside suites.
    notices: what was taken from the profile's file, and what its reader assumed.
    """

    model: str
    base: Problem
    name: str = ""
    notices: tuple[str, ...] = ()
    _problems: dict[RegimeMode, Problem] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def profile(self) -> Profile:
        """The profile, of every regime."""
        return self.base.profile

    @property
    def cluster(self) -> Cluster:
        """The cluster, of every regime."""
        return self.base.cluster

    @property
    def mini_batch(self) -> int:
        """Samples for one weight update."""
        return self.base.mini_batch

    @property
    def regime(self) -> Regime:
        """Precisions and optimizer, of every regime; its mode is the base's."""
        return self.base.regime

    @property
    def pins(self) -> Pins:
        """What the user fixed."""
        return self.base.pins

    def problem(self, mode: RegimeMode) -> Problem:
        """The problem in one regime; the same object each time, because to hash it takes milliseconds."""
        if mode == self.base.regime.mode:
            return self.base
        if mode not in self._problems:
            self._problems[mode] = replace(self.base, regime=replace(self.base.regime, mode=mode))
        return self._problems[mode]


def default_mini_batch(profile: Profile, cluster: Cluster) -> int:
    """One profiled size: that size. Several: 16 samples a device, rounded up to a multiple of the largest."""
    sizes = profile.on(cluster.devices[0]).micro_batches
    if len(sizes) == 1:
        return sizes[0]
    return -(-16 * cluster.size // sizes[-1]) * sizes[-1]
