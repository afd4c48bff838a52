"""PipeDream's measured networks at MadPipe's scale, 8 images of 1000 x 1000, as chains of layers."""

from collections.abc import Iterator
from functools import cache

import msgspec

from pipebench.domain.cluster import DeviceType
from pipebench.domain.problem import Problem, Regime
from pipebench.formats.profiles.shipped import load_profile
from tests.builders import cluster
from tests.plugins.contiguous import measured_chain
from tests.shared_data import shared_data

PROFILED = {"resnet50": (128, 224), "inception_v3": (128, 299), "densenet121": (64, 224), "vgg16": (128, 224)}
"""Batch and image side of each profile."""
MEMORIES = (3, 4, 5, 6, 8, 10, 12, 14, 16)


@cache
def _chain(name: str) -> Problem:
    batch, side = PROFILED[name]
    return measured_chain(shared_data(f"pipedream/{name}.txt"), 8e6 / (batch * side**2), cluster(1))


def network(name: str, devices: int, memory_gb: float, bandwidth_gb_s: float = 12) -> Problem:
    """The network on a flat cluster."""
    on = cluster(devices, round(memory_gb * 1e9), bandwidth_gb_s * 1e9)
    return msgspec.structs.replace(_chain(name), cluster=on)


def cells(names: tuple[str, ...] = tuple(PROFILED)) -> Iterator[tuple[str, int, int, int]]:
    """The paper's grid: network, devices, memory (GB), bandwidth (GB/s)."""
    for name in names:
        for bandwidth in (12, 24):
            for devices in range(2, 9):
                for memory in MEMORIES:
                    yield name, devices, memory, bandwidth


def shipped(devices: int, memory_gb: int, bandwidth_gb_s: int, name: str = "resnet50") -> Problem:
    """A shipped network on a flat cluster, 8 images a mini-batch."""
    profile = load_profile(name)
    device = profile.costs[0].device_type
    on = msgspec.structs.replace(
        cluster(devices, bandwidth=bandwidth_gb_s * 1e9),
        types=(DeviceType(name=device, memory_bytes=memory_gb * 10**9),),
        devices=(device,) * devices,
    )
    return Problem(profile=profile, cluster=on, mini_batch=8, regime=Regime(mode="async"))
