"""Bisection over device memory finds the least that works, within one per cent."""

import math
import time

from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.smallest_memory import smallest_memory
from pipebench.domain.problem import Problem
from tests.builders import chain_problem, cluster


def problem(memory: int) -> Problem:
    return chain_problem([1], [1], cluster(1, memory=memory))


@given(st.integers(min_value=100, max_value=50_000), st.integers(min_value=1, max_value=99))
def test_within_one_per_cent(needed: int, has: int) -> None:
    tried: list[int] = []

    def feasible(candidate: Problem) -> bool:
        tried.append(candidate.cluster.memory_bytes)
        return candidate.cluster.memory_bytes >= needed

    found = smallest_memory(problem(has), feasible, 1, time.monotonic() + 10)
    assert found is not None
    assert found in tried
    assert needed <= found <= needed * 1.01 + 1
    assert len(tried) < 2 * math.log2(needed) + 30


def test_nothing_works() -> None:
    assert smallest_memory(problem(10), lambda candidate: False, 1, time.monotonic() + 10) is None


def test_out_of_time() -> None:
    assert smallest_memory(problem(10), lambda candidate: False, 1, time.monotonic() - 1) is None
