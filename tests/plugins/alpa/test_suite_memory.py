"""memory=suite: all cuts of small graphs into all shapes, weighed by the suite; plans that fit under 1F1B."""

import random
from itertools import combinations, pairwise, product

import pytest
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.graph import Parameter
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Alternative
from pipebench_alpa.planner import layers_of
from pipebench_alpa.planner import plan as alpa
from pipebench_alpa.plugin import AlpaOptions
from pipebench_alpa.stage_costs import LogicalShape, ways
from tests.builders import cluster, dag_problem
from tests.plugins.running import context, scheduled

DEVICES = 4
NS = 1e-9


def instance(seed: int, pinned: bool = True) -> Problem:
    """Two to four operators with alternatives of degree 2, a parameter of two operators, buffers and workspace."""
    chance = random.Random(seed)
    nodes = chance.randint(2, 4)
    size = chance.choice([1, 2, 4])
    problem = dag_problem(
        [chance.randint(1, 100) for _ in range(nodes)],
        [chance.randint(1, 100) for _ in range(nodes)],
        [
            (
                i,
                tuple(j for j in range(i + 1, nodes) if j == i + 1 or chance.random() < 0.4),
                chance.randint(0, 20),
            )
            for i in range(nodes - 1)
        ],
        cluster(DEVICES, memory=chance.randint(60, 500)),
        weights=[chance.choice([0, chance.randint(1, 40)]) for _ in range(nodes)],
        saved=[chance.choice([0, chance.randint(1, 20)]) for _ in range(nodes)],
        mini_batch=chance.choice([4, 8]),
        micro_batches=(1, 2, 4),
        pins=Pins(micro_batch=size) if pinned else None,
    )
    graph = problem.profile.graph
    users = {chance.randrange(nodes), chance.randrange(nodes)}
    operators = tuple(
        replace(each, parameters=(*each.parameters, "both")) if at in users else each
        for at, each in enumerate(graph.operators)
    )
    shared = Parameter(name="both", bytes=chance.randint(1, 30))
    device = problem.profile.costs[0]
    costs = tuple(
        replace(
            each,
            workspace_bytes=chance.choice([0, 20]),
            alternatives=(
                Alternative(
                    id="half",
                    tensor_parallel=2,
                    forward_s=tuple(s / 2 for s in each.forward_s),
                    backward_s=tuple(s / 2 for s in each.backward_s),
                    parameter_bytes=chance.randint(0, 20),
                    saved_bytes_per_sample=chance.randint(0, 10) / 2,
                    fixed_bytes=chance.randint(0, 10),
                    transient_bytes_per_sample=float(chance.randint(0, 10)),
                ),
            )
            if chance.random() < 0.7
            else (),
        )
        for each in device.operators
    )
    profile = replace(
        problem.profile,
        graph=replace(graph, operators=operators, parameters=(*graph.parameters, shared)),
        costs=(replace(device, operators=costs),),
    )
    return replace(problem, profile=profile)


def brute_force(problem: Problem) -> float:
    """Over all cuts of the planner's line of operators into stages of all shapes, on all devices."""
    size = problem.pins.micro_batch or 1
    graph, model = problem.profile.graph, CostModel(problem)
    order = [each for (each,) in layers_of(graph, model.times.at(size)[0].astype(float), 48, 0.5)]
    shapes = [
        LogicalShape(devices // tensor, tensor)
        for devices in (1, 2, 4)
        for tensor in (1, 2, 4)
        if devices % tensor == 0 and size % (devices // tensor) == 0
    ]
    best = float("inf")
    for count in range(1, len(order) + 1):
        for cuts in combinations(range(1, len(order)), count - 1):
            parts = [order[a:b] for a, b in pairwise((0, *cuts, len(order)))]
            for chosen in product(shapes, repeat=count):
                if sum(shape.devices for shape in chosen) == DEVICES:
                    best = min(best, objective(problem, model, parts, chosen))
    return best


def objective(
    problem: Problem, model: CostModel, parts: list[list[int]], shapes: tuple[LogicalShape, ...]
) -> float:
    """Sum of stage times + (B - 1) times the largest, inf where a stage does not fit."""
    size = problem.pins.micro_batch or 1
    names = [operator.name for operator in problem.profile.graph.operators]
    stages = []
    for part, shape in zip(parts, shapes, strict=True):
        first = sum(len(stage.devices) for stage in stages)
        way = ways(problem, shape, size)
        choice = tuple(way[node] for node in part)
        stages.append(
            Stage(
                operators=tuple(names[node] for node in part),
                devices=tuple(range(first, first + shape.devices)),
                data_parallel=shape.data_parallel,
                tensor_parallel=shape.tensor_parallel,
                micro_batch=size,
                choice=choice if any(choice) else (),
            )
        )
    plan = Plan(stages=tuple(stages), order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))
    edges, micro_batches = model.messages(plan), problem.mini_batch // size
    for at in range(len(stages)):
        live = min(len(stages) - at, micro_batches)
        if model.stage_memory(plan, at, edges).peak(live) > problem.cluster.memory_bytes:
            return float("inf")
    times = [model.stage_times(stage, plan).period * NS for stage in stages]
    return sum(times) + (micro_batches - 1) * max(times)


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_of_cuts_that_fit(seed: int) -> None:
    problem = instance(seed)
    expected = brute_force(problem)
    if expected == float("inf"):
        with pytest.raises(InfeasibleProblem):
            alpa(problem, context(AlpaOptions()))
        return
    found = alpa(problem, context(AlpaOptions()))
    assert found.claimed_native == pytest.approx(expected, rel=1e-9)
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)


@pytest.mark.parametrize("seed", range(30))
def test_the_optimum_where_replicas_share_out_weights(seed: int) -> None:
    """On links that take no time, so that memory alone tells: each holds a share, and what it gathers."""
    given = instance(seed)
    levels = tuple(replace(each, bandwidth_bytes_s=1e18, latency_s=0.0) for each in given.cluster.levels)
    regime = replace(given.regime, optimizer="adam", optimizer_sharding="zero3")
    problem = replace(given, regime=regime, cluster=replace(given.cluster, levels=levels))
    expected = brute_force(problem)
    if expected == float("inf"):
        with pytest.raises(InfeasibleProblem):
            alpa(problem, context(AlpaOptions()))
        return
    assert alpa(problem, context(AlpaOptions())).claimed_native == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(60, 100))
def test_plans_are_valid_at_any_micro_batch(seed: int) -> None:
    problem = instance(seed, pinned=False)
    try:
        found = alpa(problem, context(AlpaOptions()))
    except InfeasibleProblem:
        return
    assert check_plan(problem, found.plan).status == "valid"
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)


def test_the_released_count_returns_plans_that_do_not_fit() -> None:
    """Of the instances above: what memory=suite is there for."""
    seen = set()
    for seed in range(60):
        problem = instance(seed)
        try:
            made = alpa(problem, context(AlpaOptions(memory="released"))).plan
        except InfeasibleProblem:
            continue
        seen.add(check_schedule(problem, made, scheduled(problem, made)).status)
    assert seen == {"valid", "invalid"}
