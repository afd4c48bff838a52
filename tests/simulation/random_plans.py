"""Random plans and schedules that cannot deadlock, for properties of the simulator."""

from collections.abc import Collection, Sequence

import msgspec
from hypothesis import strategies as st

from pipebench.costs.messages import stage_edges
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, Lane
from tests.builders import dag_problem
from tests.simulation.reference import Task, overlap, worker


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
    """One operator a stage, any graph, mixed micro-batches, replicas, shared devices, order edges, pipelines."""
    count = draw(st.integers(1, 5))
    time = st.integers(1, 9)
    tensors = []
    for producer in range(count - 1):
        for _ in range(draw(st.integers(0, 2))):
            consumers = draw(st.sets(st.integers(producer + 1, count - 1), min_size=1))
            tensors.append((producer, sorted(consumers), draw(st.integers(0, 6))))
    pipelines = draw(st.sampled_from([1, 1, 2]))
    mini_batch = pipelines * draw(st.sampled_from([4, 8]))
    cluster = draw(clusters(2 * count))
    problem = dag_problem(
        [draw(time) for _ in range(count)],
        [draw(time) for _ in range(count)],
        tensors,
        cluster,
        weights=[draw(st.sampled_from([0, 6])) for _ in range(count)],
        saved=[draw(st.integers(0, 9)) for _ in range(count)],
        mini_batch=mini_batch,
    )
    replicas_of_all = draw(st.integers(1, 2)) if pipelines == 2 else 0
    first, devices = 0, []
    for stage in range(count):
        if stage and draw(st.integers(0, 3)) == 0:
            devices.append(draw(st.sampled_from(devices)))
            continue
        replicas = replicas_of_all or draw(st.integers(1, 2))
        devices.append(tuple(range(first, first + replicas)))
        first += replicas
    if pipelines == 2:
        back = other_sets(draw, devices)
        pipelines, devices = (2, devices + back) if back else (1, devices)
    in_turn = draw(st.sampled_from([set(), set(devices)]))
    in_turn = {ids for ids in in_turn if len(ids) > 1 and (pipelines == 2 or draw(st.integers(0, 3)) > 0)}
    sizes = [draw(st.sampled_from([size for size in (1, 2, 4) if size >= len(ids)])) for ids in devices[:count]]
    if in_turn:
        sizes = [max(1 if ids in in_turn else len(ids) for ids in devices)] * count
    stages = tuple(
        Stage(
            operators=(f"op{stage % count}",),
            devices=ids,
            data_parallel=len(ids),
            micro_batch=sizes[stage % count],
            replicas="round_robin" if ids in in_turn else "split",
        )
        for stage, ids in enumerate(devices)
    )
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    order_edges = {(min(pair), max(pair)) for pair in draw(st.lists(pairs, max_size=2)) if pair[0] != pair[1]}
    if pipelines == 2:
        order_edges |= {(before + count, after + count) for before, after in order_edges}
    overlap = draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    return msgspec.structs.replace(with_weight_gradients(draw, problem), overlap=overlap), Plan(
        stages=stages, order_edges=tuple(sorted(order_edges)), placement="listed", pipelines=pipelines
    )


def other_sets(draw: st.DrawFn, devices: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """For each stage another set of as many devices, so that all sets are used; nothing where there is none."""
    others: dict[tuple[int, ...], tuple[int, ...]] = {}
    for size in {len(ids) for ids in devices}:
        alike = sorted({ids for ids in devices if len(ids) == size})
        if len(alike) == 1:
            return []
        turn = draw(st.integers(1, len(alike) - 1))
        others.update(zip(alike, alike[turn:] + alike[:turn], strict=True))
    return [others[ids] for ids in devices]


def with_weight_gradients(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem with a part of each backward measured apart, and with workspaces."""
    replace = msgspec.structs.replace
    (costs,) = problem.profile.costs
    operators = tuple(
        replace(
            each,
            weight_gradient_s=(each.backward_s[0] * draw(st.sampled_from([0.25, 0.5])),),
            workspace_bytes=draw(st.integers(0, 3)),
        )
        for each in costs.operators
    )
    profile = replace(problem.profile, costs=(replace(costs, operators=operators),))
    return replace(problem, profile=profile)


@st.composite
def executable_schedules(draw: st.DrawFn, problem: Problem, plan: Plan, with_pairs: bool = True) -> FiniteSchedule:
    """Lanes cut from one random order of all tasks that runs inputs first; some backwards are split.

    with_pairs: some forwards run at the same time as a backward that is ready on the same devices.
    """
    edges = stage_edges(problem.profile.graph, plan)
    counts = [problem.mini_batch // plan.pipelines // stage.micro_batch for stage in plan.stages]
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
        for turn in range(plan.stages[stage].turns):
            left["R", stage, turn] = {
                ("W" if split[mirror] else "B", mirror, i) for mirror in plan.mirrors(stage) for i in range(count)
            }
    order: list[Task] = []
    paired: set[Task] = set()
    random = draw(st.randoms(use_true_random=False))
    while left:
        ready = sorted(task for task, inputs in left.items() if not inputs)
        task = random.choice(ready)
        chosen = [task]
        here = devices_of(plan, task)
        beside = [other for other in ready if other[0] in "BI" and devices_of(plan, other) == here]
        if with_pairs and task[0] == "F" and beside and random.random() < 0.5:
            chosen.append(random.choice(beside))
            paired.add(task)
        order += chosen
        for each in chosen:
            del left[each]
        for inputs in left.values():
            inputs.difference_update(chosen)
    return lanes_from(plan, order, paired)


def devices_of(plan: Plan, task: Task) -> tuple[int, ...]:
    """The devices that run a task."""
    _, stage, number = task
    return worker(plan.stages[stage], number)


def lanes_from(plan: Plan, order: Sequence[Task], paired: Collection[Task] = ()) -> FiniteSchedule:
    """The schedule whose lanes run their tasks in this order; paired: forwards that run with the next task."""
    lanes = []
    for devices in dict.fromkeys(each for stage in plan.stages for each in stage.device_sets):
        tasks = [task for task in order if devices_of(plan, task) == devices]
        lanes.append(
            Lane(
                devices=devices,
                stage=tuple(stage for _, stage, _ in tasks),
                micro_batch=tuple(i for _, _, i in tasks),
                kinds="".join(kind for kind, _, _ in tasks),
                together=tuple(i for i, task in enumerate(tasks) if task in paired),
            )
        )
    return FiniteSchedule(lanes=tuple(lanes))
