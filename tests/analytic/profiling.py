"""Small graphs and devices for the analytic profiler, and one call that runs it."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from pipebench.domain.cluster import DeviceType
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import OperatorCosts, Precision, Profile
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile

V100 = DeviceType(
    name="V100",
    memory_bytes=16 * 10**9,
    peak_flops={"fp32": 15.7e12, "fp16": 125e12},
    memory_bandwidth_bytes_s=900e9,
    peer_bandwidth_bytes_s=120e9,
)
ENDLESS = 2.0**62
"""The largest power of two that is a rate."""
NEARLY = 1e-4
"""What an endless rate still costs, relative to the rest."""
COMPUTE_BOUND = replace(V100, memory_bandwidth_bytes_s=ENDLESS, peer_bandwidth_bytes_s=ENDLESS)
"""Only FLOP cost time."""


def run(
    graph: OperatorGraph,
    sizes: Sequence[int] = (1,),
    device: DeviceType = V100,
    precision: Precision = "fp32",
    **options: Any,
) -> Profile:
    """The profile of a graph on one device type."""
    request = ProfileRequest(devices=(device,), micro_batches=tuple(sizes), precision=precision)
    return profile(graph, Context(options=AnalyticOptions(**options), request=request))


def costs_of(made: Profile, operator: str) -> OperatorCosts:
    """One operator's costs on the first device type."""
    return made.costs[0].operators[made.graph.index[operator]]
