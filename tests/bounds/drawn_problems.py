"""Tiny problems, drawn by hypothesis."""

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET

from pipebench.domain.cluster import LinkLevel
from pipebench.domain.framework import StepCosts
from pipebench.domain.graph import Operator
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Alternative
from tests.builders import cluster, dag_problem


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Two or three operators, up to four devices on two link levels, replicas, alternatives, shared weights."""
    size = draw(st.integers(2, 3))
    devices = draw(st.integers(1, 4))
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    edges = sorted(draw(st.sets(st.sampled_from(pairs), max_size=3)))
    numbers = st.lists(st.integers(0, 30), min_size=size, max_size=size)
    shared = st.sampled_from([None, 0.3e9, 1.5e9, 6e9])
    levels = (
        LinkLevel(
            name="node", group=2, latency_s=draw(st.sampled_from([0.0, 1e-9])), bandwidth_bytes_s=2e9,
            shared_bandwidth_bytes_s=draw(shared),
        ),
        LinkLevel(
            name="net", group=4, latency_s=draw(st.sampled_from([0.0, 2e-9])),
            bandwidth_bytes_s=draw(st.sampled_from([1e9, 5e9])), shared_bandwidth_bytes_s=draw(shared),
        ),
    )  # fmt: skip
    on = msgspec.structs.replace(cluster(devices), levels=levels)
    mini_batch = draw(st.sampled_from([1, 2, 2, 4, 4]))
    sizes = draw(st.sampled_from([(1,), (1, 2), (1, 3)]))
    problem = dag_problem(
        draw(numbers), draw(numbers), [(i, (j,), 1) for i, j in edges], on, weights=draw(numbers),
        saved=draw(numbers), mini_batch=mini_batch, micro_batches=sizes,
        mode=draw(st.sampled_from(["sync", "async"])),
    )  # fmt: skip
    if draw(st.booleans()):
        problem = with_alternatives(
            problem, draw(st.integers(0, 20)), draw(st.integers(1, 2)), draw(st.integers(1, size))
        )
    if draw(st.booleans()):
        problem = draw(st.sampled_from([sharing, tied]))(problem)
    sharding = draw(st.sampled_from(["none", "zero1", "zero3"]))
    regime = Regime(
        mode=problem.regime.mode,
        gradient_precision=draw(st.sampled_from([None, "bf16"])),
        optimizer=draw(st.sampled_from(["none", "sgd", "adam"])),
        optimizer_sharding=sharding,
        sharding_ranks=UNSET if sharding == "none" else draw(st.sampled_from([UNSET, UNSET, 2])),
        step=draw(st.none() | steps()),
    )
    pins = Pins()
    if draw(st.booleans()):
        total = draw(st.sampled_from([None, None, 1, mini_batch]))
        pins = Pins(
            micro_batch=total,
            micro_batch_size=draw(st.sampled_from([None, None, 1, mini_batch])) if total is None else None,
            data_parallel=draw(st.sampled_from([None, None, 1, 2])),
            tensor_parallel=draw(st.sampled_from([None, None, 1, 2])),
            pipeline=draw(st.sampled_from([None, None, 1, 2])),
        )
    return msgspec.structs.replace(problem, regime=regime, pins=pins)


def steps() -> st.SearchStrategy[StepCosts]:
    """Steps of frameworks at the scale of the drawn problems, whose times are nanoseconds."""
    each_s = st.sampled_from([0.0, 0.3e-9, 4e-9])
    return st.builds(
        StepCosts,
        framework=st.just("drawn"),
        optimizer_s_per_element=each_s,
        gradient_s_per_element=each_s,
        reduce_overlap=st.sampled_from([0.0, 0.4, 1.0]),
        splits_messages=st.booleans(),
        spreads_rings=st.booleans(),
    )


def with_alternatives(problem: Problem, time: int, degree: int, operators: int = 1) -> Problem:
    """The first operators have another way to run."""
    costs = problem.profile.costs[0]
    count = len(costs.micro_batches)
    other = Alternative(
        id="other", tensor_parallel=degree, forward_s=(time / 1e9,) * count, backward_s=(time / 1e9,) * count,
        parameter_bytes=3, saved_bytes_per_sample=2.5, fixed_bytes=1,
    )  # fmt: skip
    first = tuple(msgspec.structs.replace(each, alternatives=(other,)) for each in costs.operators[:operators])
    changed = msgspec.structs.replace(costs, operators=(*first, *costs.operators[operators:]))
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, costs=(changed,)))


def sharing(problem: Problem) -> Problem:
    """The last operator reads the parameters of the first one too."""
    graph = problem.profile.graph
    first, last = graph.operators[0], graph.operators[-1]
    tied = Operator(
        name=last.name, kind="op", inputs=last.inputs,
        parameters=tuple(dict.fromkeys((*last.parameters, *first.parameters))),
    )  # fmt: skip
    changed = msgspec.structs.replace(graph, operators=(*graph.operators[:-1], tied))
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, graph=changed))


def tied(problem: Problem) -> Problem:
    """All operators use the parameters of the first one, and no others."""
    graph = problem.profile.graph
    used = graph.operators[0].parameters
    operators = tuple(msgspec.structs.replace(op, parameters=used) for op in graph.operators)
    changed = msgspec.structs.replace(graph, operators=operators)
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, graph=changed))
