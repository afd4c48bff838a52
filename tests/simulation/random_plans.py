"""Random plans and schedules that cannot deadlock, for properties of the simulator."""

from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st

from pipebench.costs.messages import stage_edges
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, Lane
from tests.builders import dag_problem
from tests.simulation.reference import Task, overlap


@st.composite
def clusters(draw: st.DrawFn, devices: int) -> Cluster:
    """Nodes of two devices, in every link mode, with and without shared bandwidths."""
    shared = st.sampled_from([None, 0.5e9, 1e9, 4e9])
    levels = [
        LinkLevel(name="node", group=2, bandwidth_bytes_s=1e9, shared_bandwidth_bytes_s=draw(shared)),
        LinkLevel(
            name="cluster",
            group=2 * devices,
            bandwidth_bytes_s=0.5e9,
            latency_s=draw(st.sampled_from([0.0, 3e-9])),
            shared_bandwidth_bytes_s=draw(shared),
        ),
    ]
    return Cluster(
        name="nodes",
        types=(DeviceType(name="gpu", memory_bytes=10**15),),
        devices=("gpu",) * devices,
        levels=tuple(levels),
        link_mode=draw(st.sampled_from(["full", "half", "delay"])),
    )


@st.composite
def planned_problems(draw: st.DrawFn) -> tuple[Problem, Plan]:
    """One operator a stage, any graph, mixed micro-batches, replicas, shared devices, order edges."""
    count = draw(st.integers(1, 5))
    time = st.integers(1, 9)
    tensors = []
    for producer in range(count - 1):
        for _ in range(draw(st.integers(0, 2))):
            consumers = draw(st.sets(st.integers(producer + 1, count - 1), min_size=1))
            tensors.append((producer, sorted(consumers), draw(st.integers(0, 6))))
    mini_batch = draw(st.sampled_from([4, 8]))
    cluster = draw(clusters(2 * count))
    problem = dag_problem(
        [draw(time) for _ in range(count)],
        [draw(time) for _ in range(count)],
        tensors,
        cluster,
        weights=[draw(st.sampled_from([0, 6])) for _ in range(count)],
        mini_batch=mini_batch,
    )
    first, devices = 0, []
    for stage in range(count):
        if stage and draw(st.integers(0, 3)) == 0:
            devices.append(draw(st.sampled_from(devices)))
            continue
        replicas = draw(st.integers(1, 2))
        devices.append(tuple(range(first, first + replicas)))
        first += replicas
    stages = tuple(
        Stage(
            operators=(f"op{stage}",),
            devices=ids,
            data_parallel=len(ids),
            micro_batch=draw(st.sampled_from([size for size in (1, 2, 4) if size >= len(ids)])),
        )
        for stage, ids in enumerate(devices)
    )
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    order_edges = {(min(pair), max(pair)) for pair in draw(st.lists(pairs, max_size=2)) if pair[0] != pair[1]}
    return with_weight_gradients(draw, problem), Plan(
        stages=stages, order_edges=tuple(sorted(order_edges)), placement="listed"
    )


def with_weight_gradients(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem with a part of each backward measured apart."""
    replace = msgspec.structs.replace
    (costs,) = problem.profile.costs
    operators = tuple(
        replace(each, weight_gradient_s=(each.backward_s[0] * draw(st.sampled_from([0.25, 0.5])),))
        for each in costs.operators
    )
    profile = replace(problem.profile, costs=(replace(costs, operators=operators),))
    return replace(problem, profile=profile)


@st.composite
def executable_schedules(draw: st.DrawFn, problem: Problem, plan: Plan) -> FiniteSchedule:
    """Lanes cut from one random order of all tasks that runs inputs first; some backwards are split."""
    edges = stage_edges(problem.profile.graph, plan)
    counts = [problem.mini_batch // stage.micro_batch for stage in plan.stages]
    split = [draw(st.booleans()) for _ in plan.stages]
    left: dict[Task, set[Task]] = {}
    for stage, count in enumerate(counts):
        size = plan.stages[stage].micro_batch
        back = "I" if split[stage] else "B"
        for i in range(count):
            left["F", stage, i] = {
                ("F", before, j)
                for before, after in edges
                if after == stage
                for j in overlap(i, size, plan.stages[before].micro_batch)
            }
            left[back, stage, i] = {("F", stage, i)} | {
                ("I" if split[after] else "B", after, j)
                for before, after in edges
                if before == stage
                for j in overlap(i, size, plan.stages[after].micro_batch)
            }
            if split[stage]:
                left["W", stage, i] = {(back, stage, i)}
        left["R", stage, 0] = {("W" if split[stage] else "B", stage, i) for i in range(count)}
    order: list[Task] = []
    random = draw(st.randoms(use_true_random=False))
    while left:
        ready = sorted(task for task, inputs in left.items() if not inputs)
        task = random.choice(ready)
        order.append(task)
        del left[task]
        for inputs in left.values():
            inputs.discard(task)
    return lanes_from(plan, order)


def lanes_from(plan: Plan, order: Sequence[Task]) -> FiniteSchedule:
    """The schedule whose lanes run their tasks in this order."""
    lanes = []
    for devices in dict.fromkeys(stage.devices for stage in plan.stages):
        tasks = [task for task in order if plan.stages[task[1]].devices == devices]
        lanes.append(
            Lane(
                devices=devices,
                stage=tuple(stage for _, stage, _ in tasks),
                micro_batch=tuple(i for _, _, i in tasks),
                kinds="".join(kind for kind, _, _ in tasks),
            )
        )
    return FiniteSchedule(lanes=tuple(lanes))
