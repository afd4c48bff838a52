"""Problems and plans of the class that `pipebench.bounds.contiguous` bounds, drawn by hypothesis and listed."""

from collections.abc import Iterator
from itertools import accumulate, combinations, pairwise, product

from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Regime, RegimeMode
from pipebench.domain.profile import Alternative
from tests.bounds.drawn_problems import sharing, steps, tied
from tests.builders import dag_problem, with_model_inputs

MEMORY = 10**15


@st.composite
def problems(draw: st.DrawFn, mode: RegimeMode, most: int = 5, devices: int = 5, plain: bool = False) -> Problem:
    """Operators that each read from the one before, some skips; up to `devices` devices on two link levels.

    plain: operators have one way to run, devices one link level.
    """
    size, number = draw(st.integers(1, most)), draw(st.integers(1, devices))
    numbers = st.lists(st.integers(0, 30), min_size=size, max_size=size)
    tensors = [(i, (i + 1,), draw(st.integers(0, 9))) for i in range(size - 1)]
    if size > 2 and draw(st.booleans()):
        first = draw(st.integers(0, size - 3))
        tensors.append((first, tuple(range(first + 1, size)), draw(st.integers(0, 9))))
    mini_batch = draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
    problem = dag_problem(
        draw(numbers), draw(numbers), tensors, draw(clusters(number, 1 if plain else 2)), weights=draw(numbers),
        saved=draw(numbers), mini_batch=mini_batch, micro_batches=draw(st.sampled_from([(1,), (1, 2), (1, 3)])),
    )  # fmt: skip
    problem = with_parts(draw, problem) if draw(st.booleans()) else problem
    if draw(st.booleans()):
        problem = with_model_inputs(problem, {"x": ((0, size - 1), 5)})
    if draw(st.booleans()):
        problem = draw(st.sampled_from([sharing, tied]))(problem)
    if not plain and draw(st.integers(0, 2)) == 0:
        problem = with_ways(draw, problem)
    sharding = draw(st.sampled_from(["none", "zero1", "zero3"]))
    regime = Regime(
        mode=mode,
        gradient_precision=draw(st.sampled_from([None, "bf16"])),
        optimizer=draw(st.sampled_from(["none", "adam"])),
        optimizer_sharding=sharding,
        sharding_ranks=UNSET if sharding == "none" else draw(st.sampled_from([UNSET, UNSET, 2])),
        step=draw(st.none() | steps()),
    )
    return replace(problem, regime=regime, overlap=draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])))


@st.composite
def clusters(draw: st.DrawFn, devices: int, depth: int = 2) -> Cluster:
    """Nodes of two devices, with and without shared bandwidths, in every link mode. depth: link levels."""
    shared = st.sampled_from([None, 0.5e9, 4e9])
    latency = st.sampled_from([0.0, 3e-9])
    levels = (
        LinkLevel(
            name="node", group=2, latency_s=draw(latency), bandwidth_bytes_s=2e9,
            shared_bandwidth_bytes_s=draw(shared),
        ),
        LinkLevel(
            name="net", group=8, latency_s=draw(latency), bandwidth_bytes_s=draw(st.sampled_from([0.5e9, 5e9])),
            shared_bandwidth_bytes_s=draw(shared),
        ),
    )  # fmt: skip
    return Cluster(
        name="nodes", types=(DeviceType(name="gpu", memory_bytes=MEMORY),), devices=("gpu",) * devices,
        levels=levels[-depth:], link_mode=draw(st.sampled_from(["full", "half", "delay"])),
    )  # fmt: skip


def with_parts(draw: st.DrawFn, problem: Problem) -> Problem:
    """Weight gradients apart, also where several sizes are profiled, and workspaces."""
    (costs,) = problem.profile.costs
    operators = []
    for each in costs.operators:
        share = draw(st.sampled_from([0.25, 0.5]))
        operators.append(
            replace(
                each,
                weight_gradient_s=tuple(share * time_s for time_s in each.backward_s),
                workspace_bytes=draw(st.integers(0, 3)),
            )
        )
    profile = replace(problem.profile, costs=(replace(costs, operators=tuple(operators)),))
    return replace(problem, profile=profile)


def with_ways(draw: st.DrawFn, problem: Problem) -> Problem:
    """Operators that may also run on two devices, or recompute by themselves."""
    (costs,) = problem.profile.costs
    count = len(costs.micro_batches)

    def way(name: str, degree: int, recompute: bool) -> Alternative:
        forward, backward = draw(st.integers(0, 20)), draw(st.integers(0, 20))
        return Alternative(
            id=name, tensor_parallel=degree, recompute=recompute, forward_s=(forward / 1e9,) * count,
            backward_s=(backward / 1e9,) * count, parameter_bytes=draw(st.integers(0, 12)),
            saved_bytes_per_sample=draw(st.integers(0, 9)) / 2, fixed_bytes=draw(st.integers(0, 2)),
            transient_bytes_per_sample=float(draw(st.integers(0, 3))),
        )  # fmt: skip

    operators = tuple(
        replace(each, alternatives=(way("two", 2, False), way("again", 1, True))) if draw(st.booleans()) else each
        for each in costs.operators
    )
    profile = replace(problem.profile, costs=(replace(costs, operators=operators),))
    return replace(problem, profile=profile)


@st.composite
def plans(draw: st.DrawFn, problem: Problem) -> Plan:
    """A plan of the class."""
    names = [op.name for op in problem.profile.graph.operators]
    size = problem.cluster.size
    cuts = sorted(draw(st.sets(st.integers(1, len(names) - 1), max_size=size - 1)) if len(names) > 1 else [])
    groups = [names[a:b] for a, b in pairwise([0, *cuts, len(names)])]
    divisors = [b for b in range(1, problem.mini_batch + 1) if problem.mini_batch % b == 0]
    micro_batch, first, stages = draw(st.sampled_from(divisors)), 0, []
    for position, group in enumerate(groups):
        spare = size - first - (len(groups) - position - 1)
        degree = draw(st.integers(1, min(2, spare)))
        in_turn = draw(st.booleans())
        most = spare // degree if in_turn else min(spare // degree, micro_batch)
        replicas = draw(st.integers(1, most))
        stages.append(
            Stage(
                operators=tuple(group),
                devices=tuple(range(first, first + replicas * degree)),
                data_parallel=replicas,
                tensor_parallel=degree,
                micro_batch=micro_batch,
                replicas="round_robin" if in_turn and replicas > 1 else "split",
                choice=tuple(draw(st.sampled_from(each)) for each in choices(problem, group, degree)),
                recompute=draw(st.sampled_from(["none", "none", "stage"])),
            )
        )
        first += replicas * degree
    return Plan(stages=tuple(stages))


def choices(problem: Problem, group: list[str], degree: int) -> Iterator[list[str]]:
    """For each operator the ids of its ways on so many devices."""
    (costs,) = problem.profile.costs
    for each in costs.operators:
        if each.operator in group:
            yield ["", *(way.id for way in each.alternatives if way.tensor_parallel == degree)]


def every_plan(problem: Problem) -> Iterator[Plan]:
    """All plans of the class on consecutive devices, of operators that run plainly on one device of a replica."""
    names = [op.name for op in problem.profile.graph.operators]
    divisors = [b for b in range(1, problem.mini_batch + 1) if problem.mini_batch % b == 0]
    for micro_batch, number in product(divisors, range(1, len(names) + 1)):
        ways = list(stage_ways(problem, micro_batch))
        for cuts in combinations(range(1, len(names)), number - 1):
            groups = [names[a:b] for a, b in pairwise([0, *cuts, len(names)])]
            for chosen in product(ways, repeat=number):
                ends = list(accumulate(way.data_parallel for way in chosen))
                if ends[-1] > problem.cluster.size:
                    continue
                stages = tuple(
                    replace(way, operators=tuple(group), devices=tuple(range(end - way.data_parallel, end)))
                    for group, way, end in zip(groups, chosen, ends, strict=True)
                )
                yield Plan(stages=stages)


def stage_ways(problem: Problem, micro_batch: int) -> Iterator[Stage]:
    """Stages without operators: replicas, how they share micro-batches, recomputation."""
    for replicas in range(1, problem.cluster.size + 1):
        for again in ("none", "stage"):
            stage = Stage(
                operators=(), devices=(), data_parallel=replicas, micro_batch=micro_batch,
                recompute="stage" if again == "stage" else "none",
            )  # fmt: skip
            if replicas <= micro_batch:
                yield stage
            if replicas > 1:
                yield replace(stage, replicas="round_robin")


def with_memory(problem: Problem, memory_bytes: int) -> Problem:
    """The problem on devices of so much memory."""
    cluster = problem.cluster
    types = tuple(replace(each, memory_bytes=max(1, memory_bytes)) for each in cluster.types)
    return replace(problem, cluster=replace(cluster, types=types))
