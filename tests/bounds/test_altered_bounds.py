"""Bounds against every plan of tiny problems where the cost model is another one."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.bounds import memory_bound, time_bound
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem, RegimeMode
from tests.altered import EACH_WORLD, WORLDS, altered
from tests.bounds.drawn_problems import problems
from tests.bounds.every_plan import length_ns, memory_bytes, plans
from tests.builders import chain_problem, cluster
from tests.nightly import examples


@settings(
    max_examples=examples(35),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(problems(), st.sampled_from(WORLDS), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_no_plan_is_below_the_bounds_of_its_world(
    problem: Problem, world: str, state_bytes: int, live_bytes: int, update_ns: int
) -> None:
    every = list(plans(problem))
    with altered(world, state_bytes, live_bytes, update_ns):
        model = CostModel(problem)
        try:
            time, memory = time_bound(problem), memory_bound(problem)
        except InfeasibleProblem:
            assert every == []
            return
        for plan in every:
            assert time.ns <= length_ns(model, plan), plan
            assert memory.value <= memory_bytes(model, plan), plan


@pytest.mark.parametrize("world", EACH_WORLD)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_recomputing_plans_are_not_below_the_bounds_of_their_world(world: str, mode: RegimeMode) -> None:
    problem = chain_problem(
        [2, 3], [4, 5], cluster(2), weights=[3, 7], activations=[0, 3, 0], saved=[9, 2], mode=mode, mini_batch=2
    )
    with altered(world, 40, 30, 20):
        model, time, memory = CostModel(problem), time_bound(problem), memory_bound(problem)
        for plan in plans(problem, recompute=True):
            assert time.ns <= length_ns(model, plan)
            assert memory.value <= memory_bytes(model, plan)


def best(problem: Problem) -> tuple[int, int]:
    """The least length and the least memory over all plans."""
    model = CostModel(problem)
    every: list[Plan] = list(plans(problem))
    return min(length_ns(model, p) for p in every), min(memory_bytes(model, p) for p in every)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_what_every_stage_runs_for_its_update_is_part_of_each_time_bound(mode: RegimeMode) -> None:
    one = chain_problem([3, 5], [4, 8], cluster(1), mode=mode, mini_batch=4)
    slow = chain_problem([0, 5], [0, 8], cluster(2), mode=mode, mini_batch=4, pins=Pins(data_parallel=1))
    with altered("update", update_ns=9):
        assert time_bound(one).parts["work"] == time_bound(one).ns == best(one)[0] == 4 * 20 + 9
        assert time_bound(slow).parts["operator"] == time_bound(slow).ns == best(slow)[0] == 4 * 13 + 9


def test_the_path_ends_with_an_update() -> None:
    """A forward of the first, all of the second, a backward of the first and its update."""
    problem = chain_problem(
        [1, 10], [1, 10], cluster(2), weights=[1000, 1000], mode="sync", mini_batch=4, pins=Pins(data_parallel=1)
    )
    with altered("update", update_ns=9):
        bound = time_bound(problem)
        assert (bound.kind, bound.ns, bound.operator) == ("path", 1 + 4 * 20 + 1 + 9, "op1")
        assert best(problem)[0] == bound.ns


def test_what_every_stage_holds_is_part_of_each_memory_bound() -> None:
    even = chain_problem([1, 1], [1, 1], cluster(2), weights=[10, 10], saved=[4, 4], mode="sync")
    one = msgspec.structs.replace(even, cluster=cluster(1))
    with altered("all", state_bytes=100, live_bytes=30):
        bound = memory_bound(even)
        assert bound.parts == {"weights": 120, "sample": 124 + 30 // 2, "operator": 120 + 34}
        assert bound.value == best(even)[1]
        assert memory_bound(one).value == memory_bound(one).parts["sample"] == 140 + 38 == best(one)[1]
