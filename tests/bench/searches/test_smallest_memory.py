"""Bisection over device memory finds the least number of three digits that works."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.searches.smallest_memory import rounded_up, smallest_memory
from pipebench.domain.problem import Problem
from tests.builders import chain_problem, cluster


def problem(memory: int) -> Problem:
    return chain_problem([1], [1], cluster(1, memory=memory))


def asked_of(needed: int, tried: list[int], peak: bool) -> int | None:
    def feasible(candidate: Problem) -> int:
        memory = candidate.cluster.memory_bytes
        tried.append(memory)
        if memory < needed:
            return 0
        return needed if peak else True

    return smallest_memory(problem(max(7, needed // 10**4)), feasible, 1, time.monotonic() + 10)


@given(st.integers(1, 10**15))
def test_rounding_up_to_three_digits(amount: int) -> None:
    up = rounded_up(amount)
    assert float(f"{up:.3g}") == up
    assert amount <= up <= amount * 1.01
    assert rounded_up(up) == up


@given(st.integers(8, 10**12), st.booleans())
def test_the_least_of_three_digits_is_found_and_was_tried(needed: int, peak: bool) -> None:
    tried: list[int] = []
    found = asked_of(needed, tried, peak)
    assert found == rounded_up(needed)
    assert found in tried
    assert len(tried) < 2 * math.log2(needed) + 30
    # What is printed is what was tried.
    assert all(float(f"{memory / 1e9:.3g}") == memory / 1e9 for memory in tried)


def test_the_peak_of_the_plan_found_saves_trials() -> None:
    by_peak: list[int] = []
    by_halves: list[int] = []
    assert asked_of(123_456_789, by_peak, peak=True) == asked_of(123_456_789, by_halves, peak=False) == 124 * 10**6
    assert len(by_peak) < len(by_halves)


def test_a_peak_that_the_planner_cannot_keep_to_is_not_believed() -> None:
    # It says 50 bytes, but finds its plan only where there are 90.
    found = smallest_memory(
        problem(7), lambda candidate: 50 * (candidate.cluster.memory_bytes >= 90), 1, time.monotonic() + 10
    )
    assert found == 90


def test_a_planner_that_does_not_profit_from_memory_gets_a_size_that_works() -> None:
    works = {200, 400, 56, 57, 58, 300}
    found = smallest_memory(
        problem(50), lambda candidate: candidate.cluster.memory_bytes in works, 1, time.monotonic() + 10
    )
    assert found in works


@pytest.mark.parametrize("lower", [1, 1000, 123_456])
def test_the_proven_minimum_is_where_it_starts(lower: int) -> None:
    tried: list[int] = []

    def feasible(candidate: Problem) -> bool:
        tried.append(candidate.cluster.memory_bytes)
        return True

    assert smallest_memory(problem(7), feasible, lower, time.monotonic() + 10) == max(7, rounded_up(lower))
    assert len(tried) == 1


def test_nothing_works() -> None:
    assert smallest_memory(problem(10), lambda candidate: False, 1, time.monotonic() + 10) is None


def test_out_of_time() -> None:
    assert smallest_memory(problem(10), lambda candidate: False, 1, time.monotonic() - 1) is None
