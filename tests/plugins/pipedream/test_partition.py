"""The search equals enumeration in its own class, in both forms, with and without room."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import RegimeMode
from pipebench_pipedream.intervals import IntervalCosts
from pipebench_pipedream.partition import IntervalSearch
from pipebench_pipedream.planner import replica_choices
from tests.builders import chain_problem, cluster, dag_problem
from tests.nightly import mostly_at_night
from tests.plugins.pipedream.brute_force import every_plan, random_problem

MODES: tuple[RegimeMode, ...] = ("sync", "async")
SHARED: tuple[ReplicaMode, ...] = ("round_robin", "split")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("micro_batch", [1, 3, 4])
@pytest.mark.parametrize("seed", mostly_at_night(range(12), range(6)))
def test_both_forms_equal_enumeration_at_every_memory_limit(
    seed: int, micro_batch: int, shared: ReplicaMode, mode: RegimeMode
) -> None:
    devices = 2 + seed % 3
    problem = replace(random_problem(seed, mode, devices, micro_batch), mini_batch=(2, 12)[seed % 2] * micro_batch)
    order = range(len(problem.profile.graph.operators))
    counts = replica_choices(problem, micro_batch, mode=shared)
    plans = list(every_plan(problem, order, counts, micro_batch, shared))
    costs = IntervalCosts(problem, order, counts, shared)
    by_stages = {len(p.ends) for p in plans}
    least, most = min(p.peak_bytes for p in plans), max(p.peak_bytes for p in plans)
    for limit in (least - 1, least, (3 * least + most) // 4, (least + most) // 2, most):
        fitting = [p for p in plans if p.peak_bytes <= limit]
        best = min((p.bottleneck_ns for p in fitting), default=None)
        search = IntervalSearch(costs, micro_batch, limit, devices)
        for form in ("k", "bs"):
            found, _, _ = search.run(form)
            assert (found.bottleneck_ns if found else None) == best
            if found:
                assert any(
                    (p.ends, p.replicas, p.bottleneck_ns) == (found.ends, found.replicas, found.bottleneck_ns)
                    for p in fitting
                )
        for stages in by_stages:
            best = min((p.bottleneck_ns for p in fitting if len(p.ends) == stages), default=None)
            found, _, _ = IntervalSearch(costs, micro_batch, limit, devices, stages).run("k")
            assert (found.bottleneck_ns if found else None) == best


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_bottleneck_falls_with_devices_and_memory(seed: int, mode: RegimeMode) -> None:
    # One network for all: a cluster of 8 devices, of which the search may use fewer.
    problem = random_problem(100 + seed, mode, 8, 8)
    order = range(len(problem.profile.graph.operators))
    costs = IntervalCosts(problem, order, replica_choices(problem, 8))
    far = 10**18
    table = [
        [
            found.bottleneck_ns if (found := IntervalSearch(costs, 8, limit, devices).run("k")[0]) else far
            for limit in range(0, 3000, 150)
        ]
        for devices in range(1, 9)
    ]
    assert any(far in row for row in table)
    assert any(row[-1] < far for row in table)
    for row in table:
        assert row == sorted(row, reverse=True)
    for fewer, more in pairwise(table):
        assert all(b <= a for a, b in zip(fewer, more, strict=True))


@pytest.mark.parametrize(
    ("activation", "expected"),
    [(0, 30), (20, 40), (40, 50)],
    ids=["the heavier operator", "the cut, forward and back", "one device"],
)
def test_two_operators_on_two_devices_with_unlimited_memory(activation: int, expected: int) -> None:
    problem = chain_problem([10, 10], [20, 10], cluster(2), activations=[0, activation, 0])
    found, _, _ = IntervalSearch(IntervalCosts(problem, (0, 1), (1,)), 1, 10**15, 2).run("k")
    assert found is not None
    assert found.bottleneck_ns == expected


def test_sync_adds_what_leaves_the_stage() -> None:
    problem = chain_problem([10, 10], [20, 30], cluster(2), activations=[0, 4, 0], mode="sync")
    found, _, _ = IntervalSearch(IntervalCosts(problem, (0, 1), (1,)), 1, 10**15, 2).run("k")
    assert found is not None
    assert (found.ends, found.bottleneck_ns) == ((1, 2), 40)
    heavier_first = chain_problem([10, 10], [30, 20], cluster(2), activations=[0, 4, 0], mode="sync")
    found, _, _ = IntervalSearch(IntervalCosts(heavier_first, (0, 1), (1,)), 1, 10**15, 2).run("k")
    assert found is not None
    assert found.bottleneck_ns == 40 + 2 * 4


@pytest.mark.parametrize("shared", SHARED)
def test_async_uses_three_replicas_and_amortises_their_all_reduce(shared: ReplicaMode) -> None:
    # A ring of 30 bytes at 1 byte/ns is 4 steps of 10, over 2 micro-batches. Split: 3 samples on 3 replicas take
    # 10 + 20 ns. In turn: a replica takes 30 + 60 ns once in 3 micro-batches, with 3 shares of 20 of the ring.
    problem = dag_problem([30], [60], [], cluster(3), weights=[30], mode="async", mini_batch=6, micro_batches=(3,))
    costs = IntervalCosts(problem, (0,), replica_choices(problem, 3, mode=shared), shared)
    found, _, _ = IntervalSearch(costs, 3, 10**15, 3).run("k")
    assert found is not None
    assert (found.replicas, found.bottleneck_ns) == ((3,), 30 + 40 // 2)
