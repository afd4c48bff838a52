"""The bound over every plan against enumerated plans of tiny problems: never above the best, and near it."""

import math
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.score import judge
from pipebench.bounds import time_bound
from pipebench.bounds.by_group.layers import layers_proof
from pipebench.bounds.shared import shared
from pipebench.domain.errors import InfeasibleProblem, PipebenchError
from pipebench.domain.problem import Problem, Regime, RegimeMode
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.nightly import examples, mostly_at_night
from tests.plugins.running import services
from tests.plugins.search.test_search import WHOLE, context, found, nanoseconds
from tests.plugins.search.tiny import KINDS, NS, Kind, all_plans, optimum_ns, tiny, with_memory

MODES: tuple[RegimeMode, ...] = ("sync", "async")
HUNDREDS = 17
"""With three kinds of graphs and two regimes over 10,000 problems."""
MOST: dict[RegimeMode, float] = {"sync": 1.2, "async": 1.12}
"""Of a hundred problems of a kind, the geometric mean of optimum / bound; of all it is 1.07."""


def best_ns(problem: Problem, enumerated: bool = True) -> int | None:
    """The shortest mini-batch of any plan that a search or enumeration finds; None where none fits."""
    try:
        below = nanoseconds(found(problem, context(**WHOLE)))
    except InfeasibleProblem:
        below = 10**15
    if enumerated and below > time_bound(problem).ns:
        below = optimum_ns(problem, below)
    return below if below < 10**15 else None


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hundred", range(HUNDREDS))
def test_the_bound_is_never_above_the_optimum_and_near_it(hundred: int, kind: Kind, mode: RegimeMode) -> None:
    """Replicas that share or take turns, any micro-batches, recomputation, copies; half of them are tight.

    The search looks at every plan by itself: one problem of ten is enumerated again.
    """
    logs = []
    for number in range(100 * hundred, 100 * hundred + 100):
        problem = tiny(number, mode, kind=kind)
        best = best_ns(problem, number % 10 == 0)
        if best is not None:
            bound = time_bound(problem).ns
            assert bound <= best, number
            logs.append(math.log(best / bound))
    assert math.exp(sum(logs) / len(logs)) <= MOST[mode]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", mostly_at_night([2, 4, 7, 27, 613], [27, 613]))
def test_without_a_flush_the_bound_is_never_above_the_optimum(number: int, kind: Kind) -> None:
    """The loosest ones of a sample, one in which replicas in turn are more than micro-batches, and a chain whose
    best plan has operators on two devices that might seem to go on one.
    """
    problem = tiny(number, "async", kind=kind)
    best = best_ns(problem)
    assert best is None or time_bound(problem).ns <= best


def alike(number: int, mode: RegimeMode) -> Problem:
    """A tiny problem whose operators all cost and weigh what the first one does."""
    problem = tiny(number, mode, kind=KINDS[number % len(KINDS)])
    (costs,), graph = problem.profile.costs, problem.profile.graph
    operators = tuple(replace(costs.operators[0], operator=each.operator) for each in costs.operators)
    weights = tuple(replace(each, bytes=graph.parameters[0].bytes) for each in graph.parameters)
    changed = replace(graph, parameters=weights), (replace(costs, operators=operators),)
    return replace(problem, profile=replace(problem.profile, graph=changed[0], costs=changed[1]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("hundred", mostly_at_night(range(10), []))
def test_the_bound_from_layers_is_never_above_the_optimum(hundred: int, mode: RegimeMode) -> None:
    held_against_optimum(range(100 * hundred, 100 * hundred + 100), mode)


def test_the_bound_from_layers_is_often_the_optimum_without_a_flush() -> None:
    assert held_against_optimum(range(12), "async") >= 3


def held_against_optimum(numbers: range, mode: RegimeMode) -> int:
    """How often the bound is the optimum; it is never above."""
    equal = 0
    for number in numbers:
        problem = alike(number, mode)
        shares = shared(problem)
        proof = None if shares is None else layers_proof(problem, shares, 1)
        if proof is not None:
            best = best_ns(problem, enumerated=False)
            assert best is None or proof.claimed_ns <= best, number
            equal += proof.claimed_ns == best
    return equal


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.randoms(use_true_random=False))
def test_no_plan_on_shared_devices_that_just_fits_is_below_the_bound(
    number: int, kind: Kind, random: Random
) -> None:
    """Stages on the same and on other devices, replicas in turn, copies; with an optimizer, its state shared."""
    free = with_memory(tiny(number, "async", kind=kind), 10**15)
    regime = Regime(
        mode="async",
        optimizer=random.choice(["none", "sgd", "adam"]),
        optimizer_sharding=random.choice(["none", "zero1"]),
    )
    problem = replace(free, regime=regime)
    every = list(all_plans(problem))
    for plan in random.sample(every, min(12, len(every))):
        for scheduler in ("1f1b*", "1f1b-rr", "periodic-bnb", "greedy"):
            try:
                schedule = services().schedule(scheduler, problem, plan)
                trace = simulate(problem, plan, schedule)
            except PipebenchError:
                continue
            verdict = judge(problem, plan, schedule)
            if verdict.status == "valid":
                fitting = with_memory(problem, max(1, *verdict.peak_bytes.values()))
                assert judge(fitting, plan, schedule).status == "valid"
                best = round(metrics(fitting, plan, trace).seconds * NS)
                assert time_bound(fitting).ns <= best, (scheduler, plan)


def test_where_memory_is_tight_groups_are_near_the_optimum() -> None:
    """A chain of which the best plan takes 174 ns: the mean of all devices is 42 ns."""
    problem = tiny(0, "async", kind="chain")
    bound = time_bound(problem)
    assert (bound.kind, bound.parts["work"], best_ns(problem)) == ("groups", 42, 174)
    assert 120 <= bound.ns <= 174
    free = replace(problem, cluster=tiny(1, "async", kind="chain").cluster)
    assert time_bound(free).ns < bound.ns
