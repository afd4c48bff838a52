"""Piper on tiny graphs: every partition, degree and choice, in a model written down apart; bad input; validity."""

import random
from collections.abc import Iterator
from itertools import product

import msgspec
import pytest

from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from pipebench_piper.planner import plan as piper
from pipebench_piper.plugin import PiperPlannerOptions
from tests.altered import altered
from tests.builders import cluster, dag_problem
from tests.plugins.running import context, scheduled


def random_problem(seed: int) -> Problem:
    """Three alternatives at degree 1 and two at degree 2 for each operator, each with its own bytes at cuts."""
    chance = random.Random(seed)
    nodes, devices = chance.randint(1, 4), chance.choice([1, 2, 3, 4])
    reads: list[list[str]] = [[] for _ in range(nodes)]
    tensors, operators = [], []
    for node in range(nodes - 1):
        readers = [later for later in range(node + 1, nodes) if chance.random() < 0.6]
        size = float(chance.randint(0, 20))
        tensors.append(
            Tensor(
                name=f"t{node}",
                producer=f"n{node}",
                forward_bytes_per_sample=size,
                gradient_bytes_per_sample=size,
            )
        )
        for reader in readers:
            reads[reader].append(f"t{node}")
    for node in range(nodes):
        near = [*reads[node], f"t{node}"] if node < nodes - 1 else reads[node]
        ways = tuple(
            Alternative(
                id=f"{degree}{kind}",
                tensor_parallel=degree,
                forward_s=((time := chance.uniform(1, 10) / degree),),
                backward_s=(time,),
                parameter_bytes=chance.randint(0, 20),
                saved_bytes_per_sample=float(chance.randint(0, 40)),
                fixed_bytes=chance.randint(0, 20),
                boundary_bytes={tensor: (float(chance.randint(0, 5)), 0.0) for tensor in near},
            )
            for degree, kind in ((1, "a"), (1, "b"), (2, "a"), (2, "b"))
        )
        operators.append(
            OperatorCosts(
                operator=f"n{node}",
                forward_s=ways[0].forward_s,
                backward_s=ways[0].backward_s,
                saved_bytes_per_sample=ways[0].saved_bytes_per_sample,
                alternatives=ways,
            )
        )
    graph = OperatorGraph(
        name="tiny",
        operators=tuple(Operator(name=f"n{i}", kind="op", inputs=tuple(reads[i])) for i in range(nodes)),
        tensors=tuple(tensors),
    )
    costs = DeviceCosts(device_type="gpu", micro_batches=(1,), operators=tuple(operators))
    on: Cluster = cluster(devices, memory=chance.randint(40, 400), bandwidth=chance.choice([1.0, 10.0]))
    return Problem(
        profile=Profile(name="tiny", graph=graph, costs=(costs,)),
        cluster=on,
        mini_batch=chance.choice([1, 2, 4, 6]),
        regime=Regime(mode="sync"),
    )


Amounts = tuple[int, int]


def partitions(problem: Problem) -> Iterator[list[list[int]]]:
    """Ordered lists of stages, no edge backwards."""
    nodes = len(problem.profile.graph.operators)
    for stages in range(1, nodes + 1):
        for home in product(range(stages), repeat=nodes):
            if {*home} == {*range(stages)} and all(
                home[a] <= home[b] for a, later in enumerate(problem.profile.graph.successors) for b in later
            ):
                yield [[node for node in range(nodes) if home[node] == stage] for stage in range(stages)]


def stage_seconds(problem: Problem, stage: list[int], ways: tuple[Alternative, ...], d: int) -> float:
    """Seconds of a micro-batch of a stage of d replicas under these choices."""
    compute = sum((way.forward_s[0] + way.backward_s[0]) / d for way in ways)
    return compute + besides_compute(problem, stage, ways, d)


def besides_compute(problem: Problem, stage: list[int], ways: tuple[Alternative, ...], d: int) -> float:
    """What Piper adds to the compute of a stage: tensors that cross, and the synchronisation of its weights."""
    graph, batch = problem.profile.graph, problem.mini_batch
    bandwidth = problem.cluster.levels[0].bandwidth_bytes_s
    seconds = 0.0
    for node, way in zip(stage, ways, strict=True):
        sent = 0.0
        for tensor, producer, readers in zip(graph.tensors, graph.producers, graph.consumers, strict=True):
            crossing = 2 * tensor.forward_bytes_per_sample + 2 * sum(way.boundary_bytes.get(tensor.name, ()))
            if node == producer:
                sent += crossing * sum(reader not in stage for reader in readers)
            elif node in readers and producer not in stage:
                sent += crossing
        seconds += sent / d / bandwidth
        seconds += 4 * (d - 1) * way.parameter_bytes / d / batch / bandwidth
    return seconds


def offered_at(problem: Problem, stage: list[int], t: int) -> Iterator[tuple[Alternative, ...]]:
    """All choices of a stage at a degree of tensor parallelism."""
    operators = problem.profile.costs[0].operators
    return product(*([a for a in operators[node].alternatives if a.tensor_parallel == t] for node in stage))


def best_stage(problem: Problem, stage: list[int], t: int, d: int, total: int, every: Amounts) -> float:
    """The least seconds of one stage over all choices; total: sum of the degrees from it on.

    every: bytes that each stage holds, once and for each unit in flight.
    """
    best = float("inf")
    for ways in offered_at(problem, stage, t):
        held = float(every[0] + every[1] * -(-total // d))
        for way in ways:
            held += way.saved_bytes_per_sample * -(-total // d) + 2 * way.parameter_bytes + way.fixed_bytes
        if held <= problem.cluster.memory_bytes:
            best = min(best, stage_seconds(problem, stage, ways, d))
    return best


def brute_force(problem: Problem, every: Amounts = (0, 0)) -> float:
    devices, batch = problem.cluster.size, problem.mini_batch
    degrees = [(t, d) for t in (1, 2) for d in range(1, devices + 1) if batch % d == 0 and t * d <= devices]
    best = float("inf")
    for stages in partitions(problem):
        for ways in product(degrees, repeat=len(stages)):
            if sum(t * d for t, d in ways) > devices or sum(d for _, d in ways) > batch:
                continue
            worst, total = 0.0, 0
            for stage, (t, d) in zip(reversed(stages), reversed(ways), strict=True):
                total += d
                worst = max(worst, best_stage(problem, stage, t, d, total, every))
            best = min(best, worst)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_exact_choice_is_the_optimum(seed: int) -> None:
    problem = random_problem(seed)
    expected = brute_force(problem)
    if expected == float("inf"):
        with pytest.raises(InfeasibleProblem):
            piper(problem, context(PiperPlannerOptions(memory="piper")))
        return
    found = piper(problem, context(PiperPlannerOptions(memory="piper")))
    assert found.claimed_native == pytest.approx(expected, rel=1e-8)
    assert check_plan(problem, found.plan).status == "valid"


@pytest.mark.parametrize(("world", "every"), [("state", (30, 0)), ("live", (0, 20)), ("all", (30, 20))])
@pytest.mark.parametrize("seed", range(12))
def test_exact_choice_is_the_optimum_where_every_stage_holds_more(seed: int, world: str, every: Amounts) -> None:
    problem = random_problem(seed)
    expected = brute_force(problem, every)
    with altered(world, state_bytes=30, live_bytes=20, update_ns=7_000_000_000):
        if expected == float("inf"):
            with pytest.raises(InfeasibleProblem):
                piper(problem, context(PiperPlannerOptions(memory="piper")))
            return
        found = piper(problem, context(PiperPlannerOptions(memory="piper")))
    assert found.claimed_native == pytest.approx(expected, rel=1e-8)
    assert found.claimed_native is not None
    update = 7.0 if world == "all" else 0.0
    assert found.claimed_s == pytest.approx(found.claimed_native * problem.mini_batch + update, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_plans_and_schedules_are_valid(seed: int) -> None:
    chance = random.Random(seed)
    nodes = chance.randint(2, 6)
    tensors = [
        (i, tuple(j for j in range(i + 1, nodes) if chance.random() < 0.5), chance.randint(1, 50))
        for i in range(nodes - 1)
    ]
    problem = dag_problem(
        [chance.randint(1, 100) for _ in range(nodes)],
        [chance.randint(1, 200) for _ in range(nodes)],
        [tensor for tensor in tensors if tensor[1]],
        cluster(chance.choice([2, 3, 4, 6]), memory=2500),
        weights=[chance.randint(0, 200) for _ in range(nodes)],
        saved=[chance.randint(0, 60) for _ in range(nodes)],
        mini_batch=chance.choice([4, 6, 12]),
    )
    for asked in (problem, msgspec.structs.replace(problem, pins=Pins(micro_batch=2))):
        found = piper(asked, context(PiperPlannerOptions(memory="suite")))
        assert check_plan(asked, found.plan).status == "valid"
        assert check_pins(asked, found.plan).status == "valid"
        verdict = check_schedule(asked, found.plan, scheduled(asked, found.plan))
        assert (verdict.status, verdict.witness) == ("valid", None)


def wide(pins: Pins | None = None) -> Problem:
    return dag_problem([1] * 31, [1] * 31, [], cluster(4), mini_batch=6, pins=pins)


def test_two_to_the_31_downsets() -> None:
    with pytest.raises(UnsupportedProblem, match="40001 counted so far") as caught:
        piper(wide(), context(PiperPlannerOptions(memory="piper")))
    assert "piper[states=linear]" in str(caught.value)
    found = piper(wide(), context(PiperPlannerOptions(states="linear")))
    assert check_plan(wide(), found.plan).status == "valid"


def test_a_degree_that_does_not_divide_the_batch() -> None:
    with pytest.raises(UnsupportedProblem, match="pinned to 4, which does not divide the 6 micro-batches"):
        piper(wide(Pins(data_parallel=4)), context(PiperPlannerOptions(states="linear")))
