"""Both of PipeDream's own cost models against a search over all partitions, written from the formulas."""

from itertools import product
from math import ceil, inf
from typing import Any

import msgspec
import numpy as np
import pytest

from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench_pipedream.order import linear_order
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from tests.builders import cluster, dag_problem
from tests.nightly import mostly_at_night
from tests.plugins.running import context

DEVICES = 4


def run(problem: Problem, **options: Any) -> PlanResult:
    return pipedream(problem, context(msgspec.convert(options, PipeDreamPlannerOptions)))


def random_dag(seed: int, memory: int = 10**15) -> Problem:
    random = np.random.default_rng(seed)
    count = 6
    tensors = []
    for producer in range(count - 1):
        readers = {reader for reader in range(producer + 1, count) if random.random() < 0.4} or {count - 1}
        tensors.append((producer, tuple(sorted(readers)), int(random.integers(1, 3000))))
    return dag_problem(
        random.integers(100, 9000, count).tolist(),
        random.integers(100, 9000, count).tolist(),
        tensors,
        cluster(DEVICES, memory),
        weights=random.integers(1, 9000, count).tolist(),
        mode="async",
        mini_batch=8,
        micro_batches=(8,),
    )


def brute_force(problem: Problem, released: bool, charged: bool, chain: bool, limit: float) -> float:
    """Nested downsets and replicas, all of them, by recursion from the front; ns on 1 byte a ns."""
    graph = problem.profile.graph
    costs = problem.profile.costs[0].operators
    compute = [1e9 * (c.forward_s[0] + c.backward_s[0]) for c in costs]
    weights = [sum(graph.parameter_bytes[name] for name in op.parameters) for op in graph.operators]
    sent = [8 * sum(graph.tensors[t].forward_bytes_per_sample for t in made) for made in graph.outputs]
    everything = frozenset(range(len(compute)))
    above: dict[int, set[int]] = {}
    for op in graph.topological:
        above[op] = {p for before in graph.predecessors[op] for p in (before, *above[before])}
    downsets = [
        frozenset(op for op, taken in enumerate(bits) if taken)
        for bits in product((0, 1), repeat=len(compute))
        if all(not bits[op] or all(bits[p] for p in graph.predecessors[op]) for op in range(len(compute)))
    ]
    if chain:
        downsets = [frozenset(range(size)) for size in range(len(compute) + 1)]

    def cut(state: frozenset[int]) -> float:
        if not released:
            return sum(sent[u] for u in state if any(s not in state for s in graph.successors[u]))
        ends = {u for u in state if not any(s in state for s in graph.successors[u])}
        return sum(
            sent[u]
            for u in ends
            | {p for u in ends for p in above[u] if any(s != u and s not in above[u] for s in graph.successors[p])}
        )

    def slowest(state: frozenset[int], used: int) -> float:
        best = inf
        for following in downsets:
            if not state < following:
                continue
            stage = following - state
            held = sum(weights[u] + sent[u] for u in stage)
            time, w = sum(compute[u] for u in stage), sum(weights[u] for u in stage)
            for m in range(1, DEVICES - used + 1):
                behind = DEVICES - used - m
                if ceil((behind if released else behind + m) / m) * held > limit:
                    continue
                own = (time + 4 * (m - 1) * w / m) / m if released else max(time, 2 * (m - 1) * w) / m
                if charged and state:
                    own = max(own, 2 * cut(state) / (m if released else 1))
                    if released and following != everything:
                        own = max(own, 2 * cut(following) / m)
                if following == everything:
                    rest = 0.0 if used + m == DEVICES else inf
                else:
                    rest = slowest(following, used + m)
                best = min(best, max(own, rest))
        return best

    return slowest(frozenset(), 0)


@pytest.mark.parametrize("cost", ["paper", "released"])
@pytest.mark.parametrize("communication", ["free", "charged"])
@pytest.mark.parametrize("states", ["chain", "antichain"])
@pytest.mark.parametrize("seed", mostly_at_night(range(4), range(2)))
def test_optimum(seed: int, states: str, communication: str, cost: str) -> None:
    problem = random_dag(seed)
    expected = brute_force(problem, cost == "released", communication == "charged", states == "chain", inf)
    options = {"cost": cost, "communication": communication, "states": states, "order": "level"}
    if states == "chain":  # the brute force takes operators as they are listed
        options["order"] = "branch" if _as_listed(problem, "branch") else "level"
        if not _as_listed(problem, options["order"]):
            pytest.skip("the order of the planner is not that of the brute force")
    for form in ("k", "bs"):
        result = run(problem, form=form, **options)
        assert result.claimed_native == pytest.approx(expected / 1e9, rel=1e-9)


def _as_listed(problem: Problem, order: Any) -> bool:
    graph = problem.profile.graph
    return linear_order(graph, order) == tuple(range(len(graph.operators)))


@pytest.mark.parametrize("cost", ["paper", "released"])
@pytest.mark.parametrize("seed", range(6))
def test_memory(seed: int, cost: str) -> None:
    limit = 60_000
    problem = random_dag(seed, limit)
    expected = brute_force(problem, cost == "released", False, False, limit)
    options = {"cost": cost, "communication": "free", "states": "antichain"}
    options["memory"] = "released" if cost == "released" else "decreasing"
    for form in ("k", "bs"):
        if expected == inf:
            with pytest.raises(InfeasibleProblem):
                run(problem, form=form, **options)
        else:
            assert run(problem, form=form, **options).claimed_native == pytest.approx(expected / 1e9, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": "antichain"}, "states=antichain.*add cost=paper or cost=released"),
        ({"levels": "nested"}, "levels=nested"),
        ({"cost": "paper", "memory": "released"}, "has no memory=released"),
        ({"cost": "released", "memory": "p"}, "has no memory=p"),
        ({"cost": "paper", "branches": "joined"}, "branches=joined is for states=antichain"),
        ({"cost": "paper", "form": "bs", "levels": "nested"}, "form=bs knows one link level"),
        ({"cost": "paper", "form": "bs", "idle": True}, "form=bs uses every device"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedProblem, match=message):
        run(random_dag(0), **options)


@pytest.mark.parametrize("cost", ["suite", "paper"])
def test_no_replication(cost: str) -> None:
    result = run(random_dag(1), cost=cost, replication="none")
    assert {stage.data_parallel for stage in result.plan.stages} == {1}
