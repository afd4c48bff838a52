"""The in-flight rule: published values, the depth rule, monotony, sufficiency by simulation."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.in_flight import in_flight
from pipebench.domain.errors import InvalidValue
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.schedules import one_f_one_b_schedule

MANY = 10**6
CHAIN = [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ((1, 2, 4), [10, 8, 4]),
        ((4, 4, 4), [12, 8, 4]),
        ((4, 2, 1), [12, 4, 1]),
        ((2, 1, 1), [6, 2, 1]),
    ],
)
def test_chains_of_three(sizes: tuple[int, ...], kept: list[int]) -> None:
    """The first two are GraphPipe's Figure 5."""
    assert in_flight(sizes, (1, 1, 1), CHAIN, MANY) == kept


@pytest.mark.parametrize(
    ("edges", "depth"),
    [
        ([(0, 1), (0, 2), (1, 3), (2, 3)], [3, 2, 2, 1]),
        ([(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)], [4, 3, 2, 2, 1]),
        ([(0, 1), (1, 2), (2, 4), (3, 4)], [4, 3, 2, 2, 1]),
        ([(0, 1), (0, 2)], [2, 1, 1]),
        ([], [1]),
    ],
)
@pytest.mark.parametrize("size", [1, 3])
def test_equal_micro_batches_count_the_stages_to_the_sink(
    edges: list[tuple[int, int]], depth: list[int], size: int
) -> None:
    count = len(depth)
    assert in_flight([size] * count, [1] * count, edges, MANY) == [size * stages for stages in depth]
    assert in_flight([size] * count, [1] * count, edges, MANY, hop=2) == [size * (2 * d - 1) for d in depth]


def test_k_and_the_mini_batch() -> None:
    assert in_flight([1] * 4, [2] * 4, [(0, 1), (1, 2), (2, 3)], MANY) == [8, 6, 4, 2]
    assert in_flight([2] * 4, [1] * 4, [(0, 1), (1, 2), (2, 3)], 4) == [4, 4, 4, 2]


def test_a_cycle_is_named() -> None:
    with pytest.raises(InvalidValue, match="stage 0 -> stage 1 -> stage 0"):
        in_flight([1, 1], [1, 1], [(0, 1), (1, 0)], MANY)


@st.composite
def stage_graphs(draw: st.DrawFn) -> tuple[list[int], list[int], list[tuple[int, int]], int]:
    count = draw(st.integers(1, 6))
    pairs = [(i, j) for j in range(count) for i in range(j)]
    edges = [pair for pair in pairs if draw(st.booleans())]
    sizes = [draw(st.sampled_from([1, 2, 4, 8])) for _ in range(count)]
    ks = [draw(st.integers(1, 3)) for _ in range(count)]
    return sizes, ks, edges, draw(st.sampled_from([8, 64, MANY]))


@given(stage_graphs(), st.sampled_from([1, 2]))
def test_whole_micro_batches_that_grow_towards_the_source(
    graph: tuple[list[int], list[int], list[tuple[int, int]], int], hop: int
) -> None:
    sizes, ks, edges, mini_batch = graph
    kept = in_flight(sizes, ks, edges, mini_batch, hop)
    for samples, size, k in zip(kept, sizes, ks, strict=True):
        assert samples % size == 0
        assert min(k * size, mini_batch) <= samples <= mini_batch
    for before, after in edges:
        assert kept[before] >= min(kept[after] + 1, mini_batch)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=4))
def test_balanced_chains_of_mixed_micro_batches_run_at_full_rate(sizes: list[int]) -> None:
    """With no transfers the last stage, once started, never waits: each stage takes 4 ns a sample."""
    count = len(sizes)
    problem = chain_problem([1] * count, [3] * count, cluster(count), mode="sync", mini_batch=64)
    plan = stages_plan([[stage] for stage in range(count)])
    stages = tuple(msgspec.structs.replace(s, micro_batch=b) for s, b in zip(plan.stages, sizes, strict=True))
    plan = msgspec.structs.replace(plan, stages=stages)
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    last = [i for i, stage in enumerate(trace.stage) if stage == count - 1]
    assert trace.end_ns[last[-1]] - trace.start_ns[last[0]] == 64 * 4
