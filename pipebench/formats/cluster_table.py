"""The table of clusters, and a user's cluster file, as typed records."""

import math
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from pipebench.domain.cluster import LinkLevel, LinkMode
from pipebench.domain.value import Value, require
from pipebench.formats.devices import DeviceFacts, require_rate
from pipebench.formats.strict import parse_toml

Rates = Literal["nominal", "effective"]


class LevelFacts(Value, frozen=True, kw_only=True):
    """One link level: `group` consecutive devices, all of them where it is left out. Rates one way."""

    name: str
    group: int | None = None
    latency_us: float = 0.0
    bandwidth_gb_s: float
    effective_bandwidth_gb_s: float | None = None
    shared_bandwidth_gb_s: float | None = None
    effective_shared_bandwidth_gb_s: float | None = None

    def __post_init__(self) -> None:
        require(self.group is None or self.group >= 1, f"group is {self.group}, it must be at least 1")
        require(
            math.isfinite(self.latency_us) and self.latency_us >= 0,
            f"latency_us is {self.latency_us:g}, it must be finite and not negative",
        )
        for name in self.__struct_fields__:
            if name.endswith("_gb_s") and getattr(self, name) is not None:
                require_rate(name, getattr(self, name))

    def level(self, devices: int, rates: Rates) -> LinkLevel:
        """The level among `devices` devices. An effective rate that is not known is the nominal one."""
        each, shared = self.bandwidth_gb_s, self.shared_bandwidth_gb_s
        if rates == "effective":
            each = self.effective_bandwidth_gb_s or each
            shared = self.effective_shared_bandwidth_gb_s or shared
        return LinkLevel(
            name=self.name,
            group=self.group or devices,
            latency_s=self.latency_us / 1e6,
            bandwidth_bytes_s=each * 1e9,
            shared_bandwidth_bytes_s=None if shared is None else shared * 1e9,
        )


class ClusterFacts(Value, frozen=True, kw_only=True):
    """One cluster. device: a device type's name; left out, the type that the profile was made for.

    levels: from the innermost outwards; only the last may leave out its group. devices: device types that the
    table of devices does not have.
    """

    name: str = ""
    summary: str = ""
    device: str | None = None
    link_mode: LinkMode = "full"
    levels: tuple[LevelFacts, ...]
    devices: dict[str, DeviceFacts] = {}
    sources: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        require(len(self.levels) > 0, "a cluster needs at least one link level")
        groups = [level.group for level in self.levels]
        sized = [group for group in groups if group is not None]
        require(None not in groups[:-1], "only the last link level may leave out its group")
        require(sized == sorted(set(sized)), f"groups go from the smallest to the largest, not {sized}")


class ClusterTable(Value, frozen=True, kw_only=True):
    """clusters.toml."""

    sources: dict[str, str]
    clusters: dict[str, ClusterFacts]


@lru_cache(maxsize=1)
def cluster_table() -> ClusterTable:
    """The clusters that ship."""
    data = files("pipebench.formats").joinpath("presets/clusters.toml").read_bytes()
    return parse_toml(data, ClusterTable, "clusters.toml")
