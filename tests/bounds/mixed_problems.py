"""Problems, plans and orders in which everything is mixed, by chance.

Constants, tied weights, several profiled sizes whose lines cross, ways, link levels that share a bandwidth, types
of devices, steps, stages that share devices.
"""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from msgspec.structs import replace

from pipebench.costs.messages import stage_edges
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel, Ranks
from pipebench.domain.framework import StepCosts
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from pipebench.domain.schedule import FiniteSchedule
from tests.simulation.random_plans import devices_of, lanes_from
from tests.simulation.reference import Task, overlap

MEMORY = 10**12


def mixed_problem(random: Random) -> Problem:
    """Up to four operators on up to four devices of up to two types."""
    graph = _graph(random, random.randint(1, 4))
    types = ["gpu", "old"][: random.choice([1, 1, 1, 2])]
    sizes = tuple(sorted(random.sample([1, 2, 3, 4, 8], random.choice([1, 1, 2, 3]))))
    first = _costs(random, graph, types[0], sizes)
    slower = [
        replace(each, forward_s=_times(random, len(sizes)), backward_s=each.backward_s) for each in first.operators
    ]
    costs = (first, *(replace(first, device_type=name, operators=tuple(slower)) for name in types[1:]))
    step = StepCosts(
        framework="drawn",
        optimizer_s_per_element=random.choice([0.0, 0.3e-9]),
        gradient_s_per_element=random.choice([0.0, 4e-9]),
        reduce_overlap=random.choice([0.0, 0.4, 1.0]),
        splits_messages=random.random() < 0.5,
        spreads_rings=random.random() < 0.5,
    )
    regime = Regime(
        mode=random.choice(["sync", "async"]),
        gradient_precision=random.choice([None, "bf16"]),
        optimizer=random.choice(["none", "adam"]),
        optimizer_sharding=random.choice(["none", "none", "zero1", "zero3"]),
        step=random.choice([None, None, step]),
    )
    problem = Problem(
        profile=Profile(name="mixed", graph=graph, costs=costs),
        cluster=_cluster(random, types),
        mini_batch=random.choice([1, 2, 3, 4, 5, 6, 8]),
        regime=regime,
        overlap=random.choice([0.0, 0.0, 0.3, 1.0]),
    )
    ranks = random.choice([1, 1, 2, 2, 3, 4])
    problem = problem if ranks == 1 else with_experts(random, problem, ranks)
    return _with_groups(random, with_context(random, problem, random.choice([1, 1, 2, 3])))


def _with_groups(random: Random, problem: Problem) -> Problem:
    """The problem, where replicas share something out with a chance in groups that hold a copy each."""
    regime = problem.regime
    if not regime.shards_optimizer or regime.expert_ranks > 1 or random.random() < 0.5:
        return problem
    ranks = random.choice([1, 2, 3]) * regime.context_ranks
    return replace(problem, regime=replace(regime, sharding_ranks=ranks))


def with_experts(random: Random, problem: Problem, ranks: int) -> Problem:
    """The problem with a part of some weights, where there are any, of experts that so many ranks share out."""
    graph = problem.profile.graph
    shared = replace(
        graph,
        parameters=tuple(
            replace(each, expert_bytes=random.choice([0, each.bytes, random.randint(0, each.bytes)]))
            for each in graph.parameters
        ),
    )
    if not any(shared.expert_weight_bytes):
        return problem

    def way(each: Alternative) -> Alternative:
        return replace(each, expert_bytes=random.choice([0, each.parameter_bytes // 2, each.parameter_bytes]))

    costs = tuple(
        replace(
            on,
            operators=tuple(
                replace(each, alternatives=tuple(map(way, each.alternatives))) for each in on.operators
            ),
        )
        for on in problem.profile.costs
    )
    return replace(
        problem,
        profile=replace(problem.profile, graph=shared, costs=costs),
        regime=replace(problem.regime, expert_parallel=ranks),
    )


def with_context(random: Random, problem: Problem, ranks: int) -> Problem:
    """The problem whose devices stand for so many ranks each, which share out sequences."""
    if ranks == 1:
        return problem
    each = tuple(replace(level, group=ranks * level.group) for level in problem.cluster.levels)
    if random.random() < 0.5:
        each = (replace(each[0], name="inner", group=ranks, latency_s=0.0), *each[each[0].group == ranks :])
    return replace(
        problem,
        profile=replace(problem.profile, graph=replace(problem.profile.graph, context_parallel=ranks)),
        cluster=replace(problem.cluster, ranks=Ranks(count=ranks, levels=each)),
        regime=replace(problem.regime, context_parallel=ranks),
    )


def _graph(random: Random, size: int) -> OperatorGraph:
    names = [f"op{at}" for at in range(size)]
    made: list[tuple[int, set[int]]] = [(at, {at + 1}) for at in range(size - 1) if random.random() < 0.8]
    if size > 2 and random.random() < 0.5:
        made.append((0, set(random.sample(range(1, size), 2))))
    constants = {at for at in range(size - 1) if random.random() < 0.15}
    for producer, readers in sorted(made, key=lambda each: each[0]):
        constants -= readers if producer not in constants else set()
    parameters = [Parameter(name=f"w{at}", bytes=random.randint(0, 60)) for at in range(random.randint(0, size))]
    each_bytes = random.choice([1, 10, 100])
    tensors = [
        Tensor(
            name=f"t{at}",
            producer=names[producer],
            forward_bytes_per_sample=float(random.randint(0, 9) * each_bytes),
            gradient_bytes_per_sample=float(random.choice([0, 4 * each_bytes])),
            fixed_bytes=random.choice([0, 0, 7 * each_bytes]),
        )
        for at, (producer, _) in enumerate(made)
    ]
    operators = [
        Operator(
            name=name,
            kind="op",
            inputs=tuple(f"t{tensor}" for tensor, (_, readers) in enumerate(made) if at in readers),
            parameters=tuple(each.name for each in parameters if random.random() < 0.5),
            constant=at in constants,
        )
        for at, name in enumerate(names)
    ]
    return OperatorGraph(
        name="mixed", operators=tuple(operators), tensors=tuple(tensors), parameters=tuple(parameters)
    )


def _times(random: Random, sizes: int) -> tuple[float, ...]:
    """Proportional, the same at every size, or as it comes: then lines fall, or end at zero."""
    most = random.choice([9, 30, 300])
    one = random.randint(0, most)
    each = random.choice(
        [[one] * sizes, [one * (at + 1) for at in range(sizes)], [random.randint(0, most) for _ in range(sizes)]]
    )
    return tuple(ns / 1e9 for ns in each)


def _costs(random: Random, graph: OperatorGraph, name: str, sizes: tuple[int, ...]) -> DeviceCosts:
    def way(number: int) -> Alternative:
        return Alternative(
            id=f"way{number}",
            tensor_parallel=random.choice([1, 2]),
            recompute=random.random() < 0.5,
            forward_s=_times(random, len(sizes)),
            backward_s=_times(random, len(sizes)),
            parameter_bytes=random.randint(0, 30),
            saved_bytes_per_sample=random.randint(0, 20) / 2,
            fixed_bytes=random.choice([0, 5]),
            transient_bytes_per_sample=random.choice([0.0, 3.0]),
        )

    operators = []
    for operator in graph.operators:
        backward_s = _times(random, len(sizes))
        shares = [random.choice([0.0, 0.25, 1.0]) for _ in sizes]
        operators.append(
            OperatorCosts(
                operator=operator.name,
                forward_s=_times(random, len(sizes)),
                backward_s=backward_s,
                weight_gradient_s=tuple(share * each for share, each in zip(shares, backward_s, strict=True)),
                saved_bytes_per_sample=float(random.choice([0, random.randint(0, 300)])),
                workspace_bytes=random.choice([0, random.randint(0, 50)]),
                alternatives=tuple(way(number) for number in range(random.choice([0, 0, 1, 2]))),
            )
        )
    return DeviceCosts(device_type=name, micro_batches=sizes, operators=tuple(operators))


def _cluster(random: Random, types: list[str]) -> Cluster:
    levels = tuple(
        LinkLevel(
            name=f"of {group}",
            group=group,
            latency_s=random.choice([0.0, 7e-9]),
            bandwidth_bytes_s=random.choice([0.5e9, 1e9, 10e9]),
            shared_bandwidth_bytes_s=random.choice([None, 0.4e9, 5e9]),
        )
        for group in random.choice([(8,), (2, 8), (1, 2, 8), (3, 8)])
    )
    return Cluster(
        name="mixed",
        types=tuple(DeviceType(name=name, memory_bytes=MEMORY) for name in types),
        devices=tuple(random.choice(types) for _ in range(random.randint(1, 4))),
        levels=levels,
        link_mode=random.choice(["full", "half", "delay"]),
    )


def mixed_plan(random: Random, problem: Problem) -> Plan | None:
    """Often valid. Stages in a row, or operators dealt out; copies, shared devices, replicas in both modes."""
    copies = random.choice([1, 1, 1, 2])
    if problem.mini_batch % copies:
        return None
    samples, room = problem.mini_batch // copies, problem.cluster.size // copies
    sizes = [size for size in range(1, samples + 1) if samples % size == 0]
    one_size = random.choice([None, *sizes])
    sets: list[Stage] = []
    stages: list[Stage] = []
    for group in _groups(random, problem):
        first = sum(len(each.devices) for each in sets)
        micro_batch = one_size or random.choice(sizes)
        if sets and (first >= room or random.random() < 0.3):
            stage = replace(random.choice(sets), micro_batch=micro_batch)
        elif first < room:
            degree = random.choice([1, 1, 2]) if room - first > 1 else 1
            replicas = random.randint(1, (room - first) // degree)
            ranks = problem.regime.expert_ranks
            if ranks > 1 and random.random() < 0.8:
                degree = 2 if ranks % 2 == 0 and room - first > 1 and random.random() < 0.4 else 1
                replicas = max(1, (room - first) // (degree * ranks)) * max(1, ranks // degree)
                if replicas * degree > room - first:
                    return None
            stage = Stage(
                operators=(),
                devices=tuple(range(first, first + replicas * degree)),
                data_parallel=replicas,
                tensor_parallel=degree,
                micro_batch=micro_batch,
                replicas=random.choice(["split", "split", "round_robin"]) if replicas > 1 else "split",
            )
            sets.append(stage)
        else:
            return None
        known = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
        ways = [
            ["", *(way.id for way in known[at].alternatives if way.tensor_parallel == stage.tensor_parallel)]
            for at in group
        ]
        if stage.tensor_parallel > 1 and problem.regime.expert_ranks > 1:  # experts run split there
            ways = [each[1:] or each for each in ways]
        stages.append(
            replace(
                stage,
                operators=tuple(problem.profile.graph.operators[at].name for at in group),
                choice=tuple(random.choice(each) for each in ways),
                recompute=random.choice(["none", "stage"]),
            )
        )
    routing = random.choice(["direct", "relay"])
    return Plan(stages=tuple(stages), copies=copies, placement="listed", routing=routing)


def _groups(random: Random, problem: Problem) -> list[list[int]]:
    order = problem.profile.graph.topological
    cuts = sorted(random.sample(range(1, len(order)), random.randint(0, len(order) - 1)))
    groups = [set(order[first:end]) for first, end in pairwise([0, *cuts, len(order)])]
    if random.random() < 0.3:
        dealt = [random.randrange(len(groups)) for _ in order]
        groups = [{at for at, where in enumerate(dealt) if where == group} for group in sorted(set(dealt))]
    for at, operator in enumerate(problem.profile.graph.operators):
        for group in groups:
            if operator.constant and random.random() < 0.3:
                group.add(at)
    return [sorted(group) for group in groups]


def mixed_order(random: Random, problem: Problem, plan: Plan) -> FiniteSchedule:
    """All tasks, inputs first, backwards before forwards or not; some are split, some run at once."""
    edges = stage_edges(problem.profile.graph, plan)
    split = [random.random() < 0.5 for _ in plan.stages]
    left: dict[Task, set[Task]] = {}
    for stage, task, inputs in _tasks(problem, plan, edges, split):
        left[task, stage[0], stage[1]] = inputs
    late, together = random.choice([0.0, 0.5, 1.0]), random.choice([0.0, 0.5, 1.0])
    order: list[Task] = []
    paired: set[Task] = set()
    while left:
        ready = sorted((task for task, inputs in left.items() if not inputs), key=lambda task: (task[2], task))
        backwards = [task for task in ready if task[0] in "BI"]
        chosen = [random.choice(backwards if backwards and random.random() < late else ready[:2])]
        beside = [task for task in backwards if devices_of(plan, task) == devices_of(plan, chosen[0])]
        if chosen[0][0] == "F" and beside and random.random() < together:
            paired.add(chosen[0])
            chosen.append(beside[0])
        order += chosen
        for task in chosen:
            del left[task]
        for inputs in left.values():
            inputs.difference_update(chosen)
    return lanes_from(plan, order, paired)


def _tasks(
    problem: Problem, plan: Plan, edges: list[tuple[int, int]], split: list[bool]
) -> Iterator[tuple[tuple[int, int], str, set[Task]]]:
    """Stage and micro-batch, kind, and what the task waits for."""
    for at, stage in enumerate(plan.stages):
        count = problem.mini_batch // plan.copies // stage.micro_batch

        def covering(kind: str, other: int, i: int, size: int = stage.micro_batch) -> set[Task]:
            return {(kind, other, j) for j in overlap(i, size, plan.stages[other].micro_batch)}

        for i in range(count):
            into = [covering("F", before, i) for before, after in edges if after == at]
            back = [covering("I" if split[after] else "B", after, i) for before, after in edges if before == at]
            yield (at, i), "F", set().union(*into)
            yield (at, i), "I" if split[at] else "B", {("F", at, i)}.union(*back)
            if split[at]:
                yield (at, i), "W", {("I", at, i)}
        for turn in range(stage.turns):
            yield (at, turn), "R", {("W" if split[at] else "B", at, i) for i in range(count)}


def with_just_enough(problem: Problem, peaks: dict[int, int]) -> Problem:
    """The problem on devices with as much memory as the fullest of their type needs."""
    most: dict[str, int] = {}
    for device, peak in peaks.items():
        name = problem.cluster.devices[device]
        most[name] = max(most.get(name, 1), peak)
    types = tuple(replace(each, memory_bytes=most.get(each.name, 1)) for each in problem.cluster.types)
    return replace(problem, cluster=replace(problem.cluster, types=types))


def some_pins(random: Random, plan: Plan) -> Pins:
    """Of what the plan does, some is pinned."""
    stage = plan.stages[0]
    said = {
        "micro_batch": stage.micro_batch,
        "data_parallel": stage.data_parallel * plan.all_pipelines,
        "tensor_parallel": stage.tensor_parallel,
        "pipeline": len({each.devices for each in plan.stages}),
    }
    kept = {name: number for name, number in said.items() if random.random() < 0.5}
    each = stage.micro_batch // stage.sharers if "micro_batch" not in kept and random.random() < 0.3 else None
    each = None if stage.micro_batch % stage.sharers else each
    return Pins(**kept, micro_batch_size=each, recompute=random.choice([None, stage.recompute]))
