"""Random problems for the chain algorithms: tight integers, so that ties and equalities are common."""

import msgspec
from hypothesis import strategies as st

from pipebench.domain.cluster import Cluster, LinkLevel
from pipebench.domain.graph import Parameter
from pipebench.domain.problem import Optimizer, Problem, Regime
from pipebench.domain.profile import Precision
from tests.builders import chain_problem, cluster, dag_problem, with_model_inputs

small = st.integers(0, 12)


@st.composite
def partitions(draw: st.DrawFn, length: int, most: int) -> tuple[int, ...]:
    """Bounds of at most `most` stages of `length` layers."""
    inner = draw(st.sets(st.integers(1, length - 1), max_size=min(most, length) - 1)) if length > 1 else set()
    return (0, *sorted(inner), length)


@st.composite
def chains(draw: st.DrawFn, most_layers: int = 7, most_devices: int = 4, least_time: int = 0) -> Problem:
    """A chain in MadPipe's figures on a flat cluster whose memory is between scarce and ample."""
    length = draw(st.integers(1, most_layers))

    def listed(count: int, least: int = 0) -> list[int]:
        return draw(st.lists(st.integers(least, 12), min_size=count, max_size=count))

    return chain_problem(
        listed(length, least_time),
        listed(length, least_time),
        cluster(
            draw(st.integers(1, most_devices)),
            memory=draw(st.integers(20, 200)),
            bandwidth=draw(st.sampled_from([5e8, 1e9, 3e9])),
        ),
        activations=listed(length + 1),
        weights=listed(length),
    )


@st.composite
def two_level_clusters(draw: st.DrawFn, devices: int) -> Cluster:
    """Nodes of two or three devices, faster inside (or, at times, slower)."""
    levels = [
        LinkLevel(
            name="node",
            group=draw(st.integers(2, 3)),
            latency_s=draw(st.sampled_from([0.0, 2e-9])),
            bandwidth_bytes_s=draw(st.sampled_from([3e8, 2e9])),
        ),
        LinkLevel(name="all", group=devices + 3, latency_s=3e-9, bandwidth_bytes_s=5e8),
    ]
    return msgspec.structs.replace(cluster(devices), levels=tuple(levels))


@st.composite
def dags(draw: st.DrawFn, most_operators: int = 8, devices: int = 4) -> Problem:
    """Operators in listed topological order with skips, shared weights, workspace, ids without gradient,
    inputs of the model, two link levels, several samples a micro-batch, an optimizer.
    """
    count = draw(st.integers(2, most_operators))
    tensors = []
    for producer in range(count - 1):
        readers = draw(st.sets(st.integers(producer + 1, min(count - 1, producer + 3)), max_size=2))
        if readers:
            tensors.append((producer, tuple(sorted(readers)), draw(small)))

    def listed() -> list[int]:
        return draw(st.lists(small, min_size=count, max_size=count))

    problem = dag_problem(
        listed(),
        listed(),
        tensors,
        draw(two_level_clusters(devices)),
        weights=listed(),
        saved=listed(),
        mode="async",
        mini_batch=draw(st.sampled_from([1, 2, 6])),
    )
    readers = st.sets(st.integers(0, count - 1), max_size=3)
    inputs = {name: (sorted(draw(readers)), draw(small)) for name in ("ids", "mask")}
    return with_model_inputs(decorated(draw, problem), inputs)


def decorated(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem with fractional sizes, fixed message bytes, workspace, shared weights and a regime."""
    graph = problem.profile.graph
    tensors = tuple(
        msgspec.structs.replace(
            tensor,
            forward_bytes_per_sample=tensor.forward_bytes_per_sample / 2,
            gradient_bytes_per_sample=draw(st.sampled_from([0.0, tensor.gradient_bytes_per_sample])),
            fixed_bytes=draw(st.integers(0, 2)),
        )
        for tensor in graph.tensors
    )
    tied = draw(st.lists(st.booleans(), min_size=len(graph.operators), max_size=len(graph.operators)))
    operators = tuple(
        msgspec.structs.replace(op, parameters=(*op.parameters, "tied") if uses else op.parameters)
        for op, uses in zip(graph.operators, tied, strict=True)
    )
    parameters = (*graph.parameters, Parameter(name="tied", bytes=draw(st.integers(1, 30))))
    costs = tuple(
        msgspec.structs.replace(each, workspace_bytes=draw(small)) for each in problem.profile.costs[0].operators
    )
    precision: Precision = draw(st.sampled_from(["fp32", "bf16"]))
    optimizer: Optimizer = draw(st.sampled_from(["none", "sgd", "adam"]))
    profile = msgspec.structs.replace(
        problem.profile,
        graph=msgspec.structs.replace(graph, tensors=tensors, operators=operators, parameters=parameters),
        costs=(msgspec.structs.replace(problem.profile.costs[0], operators=costs),),
        precision=precision,
    )
    regime = Regime(
        mode="async",
        precision=precision,
        gradient_precision=draw(st.sampled_from([None, "fp32"])),
        optimizer=optimizer,
    )
    return msgspec.structs.replace(problem, profile=profile, regime=regime)
