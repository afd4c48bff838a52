"""Candidates for the micro-batch: by definition on small numbers, for one and several profiled sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.micro_batches import (
    MOST_STEPS,
    divisors,
    least_period_ns,
    micro_batch_candidates,
    micro_batch_notices,
    near_profiled,
    proportional_notices,
    replica_counts,
)
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Pins, Problem, RegimeMode
from tests.builders import cluster, dag_problem, stages_plan

MODES: tuple[RegimeMode, ...] = ("sync", "async")


def problem(
    mini_batch: int, sizes: tuple[int, ...], devices: int = 8, mode: RegimeMode = "sync", **pins: int
) -> Problem:
    return dag_problem(
        [3, 5],
        [6, 7],
        [(0, (1,), 4)],
        cluster(devices),
        mode=mode,
        mini_batch=mini_batch,
        micro_batches=sizes,
        pins=Pins(**pins),  # type: ignore[arg-type]
    )


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_divisors(number: int, most: int) -> None:
    assert divisors(number, most) == [d for d in range(1, min(number, most) + 1) if number % d == 0]


@pytest.mark.parametrize("mode", MODES)
def test_alone_a_stage_gets_the_profiled_sizes_that_divide(mode: RegimeMode) -> None:
    assert micro_batch_candidates(problem(24, (1, 2, 4, 8, 16), mode=mode)) == (1, 2, 4, 8)
    assert micro_batch_candidates(problem(24, (1, 2, 4, 8, 16), mode=mode, micro_batch=6)) == (6,)
    assert micro_batch_candidates(problem(7, (2, 4), mode=mode)) == (7,)


def test_one_profiled_size_is_doubled_and_halved_in_sync_only() -> None:
    assert micro_batch_candidates(problem(48, (4,))) == (1, 2, 4, 8, 16)
    assert micro_batch_candidates(problem(48, (4,), mode="async")) == (4,)


@pytest.mark.parametrize("mode", MODES)
def test_replicas_share_larger_sizes(mode: RegimeMode) -> None:
    asked = problem(1024, (1, 2, 4, 8), devices=64, mode=mode)
    assert micro_batch_candidates(asked, replica_counts(64)) == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    asked = problem(112, (1, 2, 4, 8), devices=7, mode=mode)
    assert micro_batch_candidates(asked, replica_counts(7)) == (1, 2, 4, 7, 8, 14, 16, 28, 56)
    assert micro_batch_candidates(problem(16, (8,), mode="async"), (1, 2, 4)) == (8, 16)


@given(
    st.integers(1, 400),
    st.sets(st.integers(1, 12), min_size=2, max_size=4),
    st.sets(st.integers(1, 9), min_size=1, max_size=4),
    st.sampled_from(MODES),
)
def test_by_definition(mini_batch: int, profiled: set[int], counts: set[int], mode: RegimeMode) -> None:
    asked = problem(mini_batch, tuple(sorted(profiled)), mode=mode)
    wanted = [
        size
        for size in range(1, mini_batch + 1)
        if mini_batch % size == 0 and any(-(-size // count) in profiled for count in counts if count <= size)
    ]
    assert micro_batch_candidates(asked, sorted(counts)) == tuple(wanted or [mini_batch])
    said = any("no profiled size" in notice for notice in micro_batch_notices(asked, sorted(counts)))
    assert said == (not wanted)


def test_huge_mini_batches_are_refused_and_small_sizes_left_out() -> None:
    with pytest.raises(UnsupportedProblem, match="31250000 micro-batches of 64"):
        micro_batch_candidates(problem(2 * 10**9, (1, 2, 4, 8)), replica_counts(8))
    with pytest.raises(UnsupportedProblem, match="2000000000 micro-batches of 1"):
        micro_batch_candidates(problem(2 * 10**9, (1,), micro_batch=1))
    # Two operators: never more than two stages.
    most = MOST_STEPS // 2
    asked = problem(most * 4, (1, 2, 4, 8))
    assert micro_batch_candidates(asked) == (4, 8)
    assert micro_batch_notices(asked) == (
        "the smallest micro-batches were left out: a mini-batch would have too many of them",
    )
    # A periodic schedule has one period whatever the mini-batch.
    assert micro_batch_candidates(problem(2 * 10**9, (1, 2), mode="async")) == (1, 2)


def test_notices() -> None:
    assert micro_batch_notices(problem(16, (1, 2, 4), mode="async")) == ()
    assert micro_batch_notices(problem(16, (4,))) == ()
    (said,) = micro_batch_notices(problem(16, (4,), mode="async"))
    assert "the only one that was profiled" in said
    assert micro_batch_notices(problem(16, (4,), mode="async", micro_batch=8)) == ()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("sizes", "micro_batch", "replicas", "said"),
    [
        ((4,), 4, (1, 1), ""),
        ((4,), 2, (1, 1), "micro-batch size 2 was not profiled (only 4)"),
        ((4,), 8, (1, 2), "micro-batch size 8 was not profiled (only 4)"),
        ((4,), 6, (1, 4), "micro-batch size 2, 6 was not profiled (only 4)"),
        ((2, 4), 1, (1, 1), ""),
    ],
)
def test_samples_of_a_replica_that_were_not_profiled(
    mode: RegimeMode, sizes: tuple[int, ...], micro_batch: int, replicas: tuple[int, int], said: str
) -> None:
    plan = stages_plan([[0], [1]], micro_batch=micro_batch, replicas=replicas)
    found = proportional_notices(problem(24, sizes, mode=mode), plan)
    assert found == ((f"{said}: times are taken in proportion",) if said else ())


def test_replica_counts() -> None:
    assert replica_counts(1) == (1,)
    assert replica_counts(8) == (1, 2, 4, 8)
    assert replica_counts(7) == (1, 2, 4, 7)
    assert replica_counts(12) == (1, 2, 3, 4, 6, 8, 12)


def test_replicas_keep_near_what_was_profiled() -> None:
    counts = (1, 2, 4, 8)
    assert near_profiled(problem(64, (1, 2, 4)), 16, counts) == (4, 8)
    assert near_profiled(problem(64, (1, 2, 4)), 4, counts) == counts
    assert near_profiled(problem(64, (1, 2, 4)), 64, counts) == counts
    assert near_profiled(problem(64, (4,)), 64, counts) == counts
    assert near_profiled(problem(64, (1, 2, 4), micro_batch=16), 16, counts) == counts


@given(st.sampled_from([1, 2, 4, 8]), st.sets(st.integers(1, 4), min_size=1), st.integers(1, 8))
def test_no_stages_are_faster_than_the_bound(micro_batch: int, counts: set[int], devices: int) -> None:
    asked = problem(8, (1, 2, 4, 8), devices=devices)
    model = CostModel(asked)
    least = least_period_ns(model, micro_batch, sorted(counts), devices)

    def period(operators: list[int], used: int) -> int:
        forward, backward = model.times.at(-(-micro_batch // used))
        return int((forward + backward)[operators].sum())

    for one in counts:
        if one <= devices:
            assert least <= period([0, 1], one)
        for other in counts:
            if one + other <= devices:
                assert least <= max(period([0], one), period([1], other))
