"""memory=suite: every split tried, priced apart and weighed by the suite; plans that fit under their scheduler."""

import random
from collections.abc import Iterator
from itertools import permutations, product

import pytest
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.graph import Parameter
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench_tarnawski.planner import plan as tarnawski
from pipebench_tarnawski.plugin import TarnawskiPlannerOptions
from tests.altered import EACH_WORLD, altered
from tests.builders import cluster, dag_problem
from tests.plugins.running import context, scheduled


def instance(seed: int, mode: RegimeMode = "sync", pinned: bool = True) -> tuple[Problem, int, int]:
    """Two to five operators on accelerators and CPUs; a parameter of two operators, workspace, tight memory."""
    chance = random.Random(seed)
    nodes, gpus, cpus = chance.randint(2, 5), chance.randint(1, 3), chance.choice([0, 0, 1, 2])
    problem = dag_problem(
        [chance.choice([0, chance.randint(1, 100)]) for _ in range(nodes)],
        [chance.choice([0, chance.randint(1, 100)]) for _ in range(nodes)],
        [
            (
                i,
                tuple(j for j in range(i + 1, nodes) if j == i + 1 or chance.random() < 0.4),
                chance.randint(0, 30),
            )
            for i in range(nodes - 1)
        ],
        cluster(gpus),
        weights=[chance.choice([0, chance.randint(1, 40)]) for _ in range(nodes)],
        saved=[chance.choice([0, chance.randint(1, 30)]) for _ in range(nodes)],
        mini_batch=chance.choice([1, 2, 8]),
        micro_batches=(1, 2),
        mode=mode,
        pins=Pins(micro_batch=1) if pinned else None,
    )
    first, last = (chance.randrange(nodes) for _ in range(2))
    graph = problem.profile.graph
    operators = tuple(
        replace(each, parameters=(*each.parameters, "both")) if at in (first, last) else each
        for at, each in enumerate(graph.operators)
    )
    shared = Parameter(name="both", bytes=chance.randint(1, 30))
    graph = replace(graph, operators=operators, parameters=(*graph.parameters, shared))
    device = problem.profile.costs[0]
    device = replace(
        device,
        operators=tuple(replace(each, workspace_bytes=chance.choice([0, 0, 20])) for each in device.operators),
    )
    slower = replace(
        device,
        device_type="cpu",
        operators=tuple(
            replace(
                each,
                forward_s=tuple(3 * s for s in each.forward_s),
                backward_s=tuple(3 * s for s in each.backward_s),
                saved_bytes_per_sample=each.saved_bytes_per_sample + 1,
            )
            for each in device.operators
        ),
    )
    on = Cluster(
        name="mixed",
        types=(
            DeviceType(name="gpu", memory_bytes=chance.randint(60, 400)),
            DeviceType(name="cpu", memory_bytes=chance.randint(60, 400)),
        ),
        devices=("gpu",) * gpus + ("cpu",) * cpus,
        levels=(LinkLevel(name="flat", group=gpus + cpus, bandwidth_bytes_s=1e9),),
    )
    profile = replace(problem.profile, graph=graph, costs=(device, slower))
    return replace(problem, profile=profile, cluster=on), gpus, cpus


def splits(problem: Problem, gpus: int, cpus: int) -> Iterator[list[tuple[list[int], int]]]:
    """Lists of loads, each with its device, no edge backwards."""
    nodes = len(problem.profile.graph.operators)
    for count in range(1, min(nodes, gpus + cpus) + 1):
        for home in product(range(count), repeat=nodes):
            if {*home} != {*range(count)} or any(
                home[a] > home[b] for a, later in enumerate(problem.profile.graph.successors) for b in later
            ):
                continue
            loads = [[node for node in range(nodes) if home[node] == load] for load in range(count)]
            for kinds in {
                tuple(device >= gpus for device in chosen) for chosen in permutations(range(gpus + cpus), count)
            }:
                free, idle = iter(range(gpus)), iter(range(gpus, gpus + cpus))
                yield [(load, next(idle if kind else free)) for load, kind in zip(loads, kinds, strict=True)]


def largest_load(problem: Problem, split: list[tuple[list[int], int]], gpus: int) -> float:
    """Seconds of the largest load as Tarnawski adds them up."""
    graph, device = problem.profile.graph, problem.profile.costs[0]
    time = [each.forward_s[0] + each.backward_s[0] for each in device.operators]
    worst = 0.0
    for held, number in split:
        seconds = (3 if number >= gpus else 1) * sum(time[node] for node in held)
        for tensor, producer, readers in zip(graph.tensors, graph.producers, graph.consumers, strict=True):
            ends = {producer, *readers}
            if number < gpus and ends & {*held} and ends - {*held}:
                seconds += 2 * tensor.forward_bytes_per_sample / 1e9
        worst = max(worst, seconds)
    return worst


def fits(problem: Problem, split: list[tuple[list[int], int]]) -> bool:
    """By the suite's memory, with a micro-batch for each load from a load on (no more than there are)."""
    names = [operator.name for operator in problem.profile.graph.operators]
    plan = Plan(
        stages=tuple(
            Stage(operators=tuple(names[node] for node in held), devices=(number,), micro_batch=1)
            for held, number in split
        ),
        order_edges=tuple((i, i + 1) for i in range(len(split) - 1)),
    )
    model = CostModel(problem)
    edges = model.messages(plan)
    return all(
        model.stage_memory(plan, at, edges).peak(min(len(split) - at, problem.mini_batch))
        <= problem.cluster.type_of(number).memory_bytes
        for at, (_, number) in enumerate(split)
    )


def brute_force(problem: Problem, gpus: int, cpus: int) -> float:
    return min(
        (largest_load(problem, split, gpus) for split in splits(problem, gpus, cpus) if fits(problem, split)),
        default=float("inf"),
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_of_splits_that_fit(seed: int) -> None:
    problem, gpus, cpus = instance(seed)
    expected = brute_force(problem, gpus, cpus)
    if expected == float("inf"):
        with pytest.raises(InfeasibleProblem):
            tarnawski(problem, context(TarnawskiPlannerOptions()))
        return
    found = tarnawski(problem, context(TarnawskiPlannerOptions()))
    assert found.claimed_native == pytest.approx(expected * 1e3, rel=1e-7, abs=1e-15)
    assert found.termination == "optimal"
    assert check_plan(problem, found.plan).status == "valid"
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)


@pytest.mark.parametrize("world", EACH_WORLD)
@pytest.mark.parametrize("seed", range(10))
def test_the_optimum_where_the_suites_memory_is_another(seed: int, world: str) -> None:
    problem, gpus, cpus = instance(seed)
    with altered(world, state_bytes=25, live_bytes=10, update_ns=9_000):
        expected = brute_force(problem, gpus, cpus)
        if expected == float("inf"):
            with pytest.raises(InfeasibleProblem):
                tarnawski(problem, context(TarnawskiPlannerOptions()))
            return
        found = tarnawski(problem, context(TarnawskiPlannerOptions()))
    assert found.claimed_native == pytest.approx(expected * 1e3, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_the_reserve_is_kept_where_a_split_fits_beside_it(seed: int) -> None:
    problem, gpus, cpus = instance(seed)
    kinds = tuple(replace(kind, memory_bytes=kind.memory_bytes * 3 // 4) for kind in problem.cluster.types)
    doubled = tuple(replace(kind, memory_bytes=2 * kind.memory_bytes) for kind in kinds)
    beside = brute_force(replace(problem, cluster=replace(problem.cluster, types=kinds)), gpus, cpus)
    whole = replace(problem, cluster=replace(problem.cluster, types=doubled))
    expected = beside if beside < float("inf") else brute_force(whole, gpus, cpus)
    asked = replace(whole, pins=replace(whole.pins, reserve=0.5))
    if expected == float("inf"):
        with pytest.raises(InfeasibleProblem):
            tarnawski(asked, context(TarnawskiPlannerOptions()))
        return
    found = tarnawski(asked, context(TarnawskiPlannerOptions()))
    assert found.claimed_native == pytest.approx(expected * 1e3, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize("seed", range(40))
def test_async_plans_can_be_scheduled(seed: int) -> None:
    problem, _, _ = instance(seed, "async", pinned=False)
    try:
        found = tarnawski(problem, context(TarnawskiPlannerOptions()))
    except InfeasibleProblem:
        return
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)


def test_both_counts_happen() -> None:
    """Of the instances above some fit, some do not, and some fit by the released count alone."""
    seen = set()
    for seed in range(60):
        problem, _, cpus = instance(seed)
        told = []
        for memory in ("released", "suite"):
            try:
                tarnawski(problem, context(TarnawskiPlannerOptions(memory=memory)))  # type: ignore[arg-type]
                told.append(True)
            except InfeasibleProblem:
                told.append(False)
        seen.add((*told, cpus > 0))
    assert {(True, True, False), (True, False, False), (False, False, False), (True, True, True)} <= seen


def test_a_smaller_micro_batch_where_the_largest_does_not_fit() -> None:
    problem = dag_problem(
        [10, 10], [20, 20], [(0, (1,), 1)], cluster(2, memory=41), saved=[10, 10], mini_batch=8,
        micro_batches=(1, 2, 4),
    )  # fmt: skip
    found = tarnawski(problem, context(TarnawskiPlannerOptions()))
    # Four samples of an operator are 40 bytes, of which the first stage holds two sets under 1F1B.
    assert [stage.micro_batch for stage in found.plan.stages] == [2]
    assert {
        stage.micro_batch
        for stage in tarnawski(problem, context(TarnawskiPlannerOptions(memory="released"))).plan.stages
    } == {4}
