"""Tarnawski's DP on tiny graphs: every split in a model written down apart; bad input; validity."""

import random
from itertools import product

import pytest

from pipebench.check import check_plan, check_schedule
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench_tarnawski.planner import plan as tarnawski
from pipebench_tarnawski.plugin import TarnawskiPlannerOptions
from tests.altered import altered
from tests.builders import cluster, dag_problem
from tests.plugins.running import context, scheduled


def with_cpus(problem: Problem, cpus: int, memory: int) -> Problem:
    """The same figures on CPUs, three times slower."""
    from msgspec.structs import replace

    device = problem.profile.costs[0]
    slower = replace(
        device,
        device_type="cpu",
        operators=tuple(
            replace(each, forward_s=(each.forward_s[0] * 3,), backward_s=(each.backward_s[0] * 3,))
            for each in device.operators
        ),
    )
    gpus = problem.cluster.size
    on = Cluster(
        name="mixed",
        types=(DeviceType(name="gpu", memory_bytes=memory), DeviceType(name="cpu", memory_bytes=10**15)),
        devices=("gpu",) * gpus + ("cpu",) * cpus,
        levels=(LinkLevel(name="flat", group=gpus + cpus, bandwidth_bytes_s=1e9),),
    )
    return replace(problem, profile=replace(problem.profile, costs=(device, slower)), cluster=on)


def instance(seed: int) -> tuple[Problem, int, int]:
    chance = random.Random(seed)
    nodes, gpus, cpus = chance.randint(1, 5), chance.randint(1, 3), chance.randint(0, 2)
    tensors = [
        (i, tuple(j for j in range(i + 1, nodes) if chance.random() < 0.6), chance.randint(0, 60))
        for i in range(nodes - 1)
    ]
    problem = dag_problem(
        [chance.choice([0, chance.randint(1, 100)]) for _ in range(nodes)],
        [chance.choice([0, 0, chance.randint(1, 100)]) for _ in range(nodes)],
        [tensor for tensor in tensors if tensor[1]],
        cluster(gpus, memory=10**15),
        weights=[chance.randint(0, 40) for _ in range(nodes)],
        mini_batch=4,
    )
    return with_cpus(problem, cpus, chance.choice([10**6, 100, 60])), gpus, cpus


def brute_force(problem: Problem, gpus: int, cpus: int, every: int = 0) -> float:
    """The smallest largest load; every: bytes that each accelerator with a load holds besides."""
    graph, device = problem.profile.graph, problem.profile.costs[0]
    nodes = len(graph.operators)
    time = [each.forward_s[0] + each.backward_s[0] for each in device.operators]
    weights = [sum(graph.parameter_bytes[p] for p in operator.parameters) for operator in graph.operators]
    memory = problem.cluster.types[0].memory_bytes
    best = float("inf")
    for home in product(range(gpus + cpus), repeat=nodes):
        # Contiguous: some order of the devices has no edge backwards.
        later = {
            (home[a], home[b]) for a, after in enumerate(graph.successors) for b in after if home[a] != home[b]
        }
        if _cyclic(later, gpus + cpus):
            continue
        worst = 0.0
        for kind, device_number in enumerate(range(gpus + cpus)):
            held = [node for node in range(nodes) if home[node] == device_number]
            if kind >= gpus:
                worst = max(worst, 3 * sum(time[node] for node in held))
                continue
            if held and every + 2 * sum(weights[node] for node in held) > memory:
                worst = float("inf")
            sent = 0.0
            for tensor, producer, readers in zip(graph.tensors, graph.producers, graph.consumers, strict=True):
                ends = {producer, *readers}
                if ends & {*held} and ends - {*held}:
                    sent += 2 * tensor.forward_bytes_per_sample / 1e9
            worst = max(worst, sum(time[node] for node in held) + sent)
        best = min(best, worst)
    return best


def _cyclic(pairs: set[tuple[int, int]], count: int) -> bool:
    left = set(range(count))
    while left:
        free = {node for node in left if not any(b == node and a in left for a, b in pairs)}
        if not free:
            return True
        left -= free
    return False


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum(seed: int) -> None:
    problem, gpus, cpus = instance(seed)
    expected = brute_force(problem, gpus, cpus)
    if expected == float("inf"):
        with pytest.raises(InfeasibleProblem):
            tarnawski(problem, context(TarnawskiPlannerOptions(memory="released")))
        return
    found = tarnawski(problem, context(TarnawskiPlannerOptions(memory="released")))
    assert found.claimed_native == pytest.approx(expected * 1e3, rel=1e-7, abs=1e-15)
    assert check_plan(problem, found.plan).status == "valid"
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert verdict.status == "valid" or (verdict.witness is not None and verdict.witness.rule == "memory")


@pytest.mark.parametrize("world", ["state", "live", "update", "all"])
@pytest.mark.parametrize("seed", range(15))
def test_the_optimum_where_every_stage_holds_more(seed: int, world: str) -> None:
    problem, gpus, cpus = instance(seed)
    every = {"state": 25, "live": 10, "update": 0, "all": 35}[world]
    expected = brute_force(problem, gpus, cpus, every)
    with altered(world, state_bytes=25, live_bytes=10, update_ns=9_000):
        if expected == float("inf"):
            with pytest.raises(InfeasibleProblem):
                tarnawski(problem, context(TarnawskiPlannerOptions(memory="released")))
            return
        found = tarnawski(problem, context(TarnawskiPlannerOptions(memory="released")))
    assert found.claimed_native == pytest.approx(expected * 1e3, rel=1e-7, abs=1e-15)
    update_s = 9e-6 if world in ("update", "all") else 0.0
    assert found.claimed_s == pytest.approx(expected * 4 + update_s, rel=1e-7, abs=1e-15)


def test_too_many_downsets() -> None:
    problem = dag_problem([1] * 31, [1] * 31, [], cluster(4))
    with pytest.raises(UnsupportedProblem, match="60001 counted so far") as caught:
        tarnawski(problem, context(TarnawskiPlannerOptions(memory="released")))
    assert "tarnawski[linearize=true]" in str(caught.value)
    found = tarnawski(problem, context(TarnawskiPlannerOptions(memory="released", linearize=True)))
    assert check_plan(problem, found.plan).status == "valid"
