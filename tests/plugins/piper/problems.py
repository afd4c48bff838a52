"""Piper's published inputs as problems, in its own setting: a sample is a micro-batch, sync, no optimizer."""

from typing import Any

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Profile
from pipebench.formats.profiles.files import read_profile
from tests.shared_data import shared_data

GIB = 2**30
BANDWIDTH = 25.0 * GIB
"""What the released program sets for its experiments; the files themselves say 25e9."""


def published(name: str) -> Profile:
    return read_profile(str(shared_data(f"piper/{name}.json")), {})


def on_cluster(
    profile: Profile, devices: int, memory_bytes: float, mini_batch: int, bandwidth: float = BANDWIDTH, **pins: Any
) -> Problem:
    device = profile.costs[0].device_type
    cluster = Cluster(
        name="flat",
        types=(DeviceType(name=device, memory_bytes=int(memory_bytes)),),
        devices=(device,) * devices,
        levels=(LinkLevel(name="flat", group=devices, bandwidth_bytes_s=bandwidth),),
    )
    return Problem(
        profile=profile, cluster=cluster, mini_batch=mini_batch, regime=Regime(mode="sync"), pins=Pins(**pins)
    )
