"""Small real models and their plans, and how to run them with the executor."""

from collections.abc import Sequence

from pipebench.bench.problems.plugin_sources import profile_graph
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Regime, RegimeMode
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.operators import (
    add,
    batch_norm,
    concat_feature_vectors,
    conv2d,
    flatten,
    global_average_pool,
    linear,
    relu,
)
from pipebench_torch.executor import execute
from pipebench_torch.plugin import ExecutorOptions
from tests.plugins.running import services

WIDTH = 24


def diamond() -> OperatorGraph:
    """One layer, two branches, and a layer that reads both and, past them, the first."""
    graph = GraphBuilder("diamond")
    x = graph.input("x", WIDTH)
    a = linear(graph, "a", x, WIDTH)
    b, c = relu(graph, "b", linear(graph, "b0", a, WIDTH)), linear(graph, "c", a, 2 * WIDTH)
    joined = linear(graph, "d", concat_feature_vectors(graph, "concat", [b, c]), WIDTH)
    add(graph, "e", joined, a, ("features",), "e")
    return graph.graph()


def image() -> OperatorGraph:
    """Convolutions with batch normalisation, whose statistics follow the cut of the samples."""
    graph = GraphBuilder("image")
    x = graph.input("x", 3, 9, 9)
    for number in range(3):
        x = conv2d(graph, f"conv{number}", x, 6, kernel=3, stride=2 if number == 1 else 1)
        x = relu(graph, f"relu{number}", batch_norm(graph, f"norm{number}", x))
    linear(graph, "head", flatten(graph, "flatten", global_average_pool(graph, "pool", x)), 5)
    return graph.graph()


def cpu_cluster(devices: int, memory: int = 10**9) -> Cluster:
    """Processes of one machine."""
    return Cluster(
        name="processes",
        types=(
            DeviceType(name="cpu", memory_bytes=memory, peak_flops={"fp32": 5e10}, memory_bandwidth_bytes_s=1e10),
        ),
        devices=("cpu",) * devices,
        levels=(LinkLevel(name="host", group=devices, latency_s=5e-5, bandwidth_bytes_s=1e9),),
    )


def problem_of(graph: OperatorGraph, devices: int, mini_batch: int, mode: RegimeMode = "sync") -> Problem:
    """The graph, profiled analytically."""
    on = cpu_cluster(devices)
    request = ProfileRequest(devices=on.types, micro_batches=(1, 2, 4, 8))
    profile = profile_graph(services().host, "analytic", graph, request)
    return Problem(profile=profile, cluster=on, mini_batch=mini_batch, regime=Regime(mode=mode))


def stages(
    groups: Sequence[Sequence[str]],
    *,
    micro_batch: int | Sequence[int] = 1,
    devices: Sequence[Sequence[int]] | None = None,
    recompute: bool = False,
) -> tuple[Stage, ...]:
    """Stages of named operators, on devices of their own unless said."""
    sizes = [micro_batch] * len(groups) if isinstance(micro_batch, int) else list(micro_batch)
    places = devices or [(position,) for position in range(len(groups))]
    return tuple(
        Stage(
            operators=tuple(group),
            devices=tuple(place),
            data_parallel=len(place),
            micro_batch=size,
            recompute="stage" if recompute else "none",
        )
        for group, size, place in zip(groups, sizes, places, strict=True)
    )


def run(problem: Problem, plan: Plan, schedule: Schedule, **options: object) -> tuple[Trace, str]:
    """The measured trace and what the executor said of the gradients, which it compares."""
    chosen = ExecutorOptions(
        **{"device": "cpu", "verify": "yes", "iterations": 2, "least_s": 0.0, "timeout_s": 120.0, **options}
    )
    context = Context(options=chosen)
    trace = execute(problem, plan, schedule, context)
    return trace, "; ".join(context.notices)
