"""Partitions that one target admits: all as shallow, none above the target, no two alike."""

import random

import pytest

from pipebench.hooks.context import Context
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.search import GraphPipeSearch
from pipebench_graphpipe.target_search import GraphPartition
from tests.plugins.graphpipe.instances import problem_on, random_series_parallel
from tests.plugins.running import context, time_ns

MEMORY = 10**6


def searched(seed: int) -> GraphPipeSearch:
    rng = random.Random(seed)
    problem = problem_on(rng, 12, random_series_parallel(rng, 12), 4, MEMORY)
    return GraphPipeSearch(problem, GraphPipeOptions(), Context(options=GraphPipeOptions()))


def depth(partition: GraphPartition) -> int:
    return max(stage.depth for stage in partition.stages)


@pytest.mark.parametrize("factor", [1.0, 1.3, 2.0])
@pytest.mark.parametrize("seed", range(8))
def test_partitions_of_one_target(seed: int, factor: float) -> None:
    search = searched(seed)
    best = search.smallest(2, MEMORY)
    assert best is not None
    target = int(best.bottleneck_ns * factor)
    found = search._target_search(2, MEMORY).within(target)
    assert found is not None
    partitions = found.partitions()
    assert {depth(partition) for partition in partitions} == {depth(partitions[0])}
    for partition in partitions:
        assert partition.bottleneck_ns <= target
        assert sorted(o for stage in partition.stages for o in stage.operators) == list(range(12))
        assert sum(partition.costs.replicas[stage.choice] for stage in partition.stages) <= 4
    assert len({partition.stages for partition in partitions}) == len(partitions)


def test_a_target_often_admits_several() -> None:
    counts = []
    for seed in range(8):
        search = searched(seed)
        best = search.smallest(2, MEMORY)
        assert best is not None
        found = search._target_search(2, MEMORY).within(int(best.bottleneck_ns * 1.3))
        assert found is not None
        counts.append(len(found.partitions()))
    assert sum(count > 1 for count in counts) >= 3
    assert max(counts) == 3


def test_a_target_below_the_smallest_admits_none() -> None:
    search = searched(0)
    best = search.smallest(2, MEMORY)
    assert best is not None
    assert search._target_search(2, MEMORY).within(best.bottleneck_ns // 2) is None


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_near_partitions_are_within_their_share_of_the_smallest(share: float) -> None:
    above = 0
    for seed in range(8):
        search = searched(seed)
        best = search.smallest(2, MEMORY)
        assert best is not None
        for partition in search._target_search(2, MEMORY).near(best, share):
            assert best.bottleneck_ns <= partition.bottleneck_ns <= best.bottleneck_ns * (1 + share)
            above += partition.bottleneck_ns > best.bottleneck_ns * (1 + share / 2)
    assert above


@pytest.mark.parametrize("seed", range(8))
def test_partitions_of_more_replicas(seed: int) -> None:
    """Of 2 or more in every stage, then of 4 or more; each the smallest of those."""
    search = searched(seed)
    best = search.smallest(4, MEMORY)
    assert best is not None
    found = search.replicated_partitions(best, MEMORY)
    assert found
    for partition in found:
        fewest = min(partition.costs.replicas[stage.choice] for stage in partition.stages)
        assert fewest >= 2
        assert partition.bottleneck_ns >= best.bottleneck_ns
        assert sorted(o for stage in partition.stages for o in stage.operators) == list(range(12))
    assert [stage.choice for stage in found[-1].stages] == [2]
    assert search.replicated_partitions(found[-1], MEMORY)[-1:] != found[-1:]


def test_partitions_of_more_replicas_can_be_better(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = []
    for seed in range(5):
        rng = random.Random(seed)
        problem = problem_on(rng, 12, random_series_parallel(rng, 12), 8, MEMORY)
        times = []
        for fewest in ((), (2, 4)):
            monkeypatch.setattr("pipebench_graphpipe.search.FEWEST_REPLICAS", fewest)
            options = GraphPipeOptions(rivals=False, targets=1, near=0)
            times.append(time_ns(problem, plan(problem, context(options)).plan))
        gains.append(times[0] / times[1])
    assert min(gains) >= 1
    assert max(gains) > 1.01
