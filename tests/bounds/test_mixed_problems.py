"""No bound is above a plan, and every certificate is accepted, where features of problems and plans are mixed."""

from collections.abc import Iterator
from contextlib import suppress
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import memory_bound, time_bound
from pipebench.bounds.contiguous import class_bound, in_class, recomputes, unbounded
from pipebench.certificates.write import certificate
from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.mixed_problems import mixed_order, mixed_plan, mixed_problem, some_pins, with_just_enough
from tests.nightly import examples
from tests.plugins.running import services

Fitting = tuple[Problem, Plan, Schedule, int]
"""A problem, a plan that just fits, its schedule and the ns that it takes."""


def fitting(random: Random) -> Iterator[Fitting]:
    """Some plans of a problem under a random order and a shipped scheduler, some with pins that they honour."""
    free = mixed_problem(random)
    for _ in range(4):
        plan = mixed_plan(random, free)
        if plan is None or check_plan(free, plan).status != "valid":
            continue
        name = random.choice(["greedy", "zb-h1"] if free.regime.mode == "sync" else ["1f1b*", "1f1b-rr", "modulo"])
        schedules: list[Schedule] = [mixed_order(random, free, plan)]
        with suppress(PipebenchError):
            schedules.append(services().schedule(name, free, plan))
        for schedule in schedules:
            verdict = check_schedule(free, plan, schedule)
            if verdict.status != "valid":
                continue
            problem = with_just_enough(free, verdict.peak_bytes)
            pinned = replace(problem, pins=some_pins(random, plan)) if random.random() < 0.4 else problem
            problem = pinned if check_pins(pinned, plan).status == "valid" else problem
            taken_s = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
            yield problem, plan, schedule, round(taken_s * 1e9)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_no_plan_is_below_the_bounds(random: Random) -> None:
    for problem, plan, schedule, taken_ns in fitting(random):
        peaks = check_schedule(problem, plan, schedule).peak_bytes
        assert time_bound(problem).ns <= taken_ns
        assert memory_bound(problem).value <= max(peaks.values())
        if not unbounded(problem) and in_class(problem, plan, schedule):
            for wider in {True, recomputes(problem, plan)}:
                bound = class_bound(problem, recomputes=wider)
                assert bound is not None
                assert bound.ns <= taken_ns


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_every_finite_schedule_has_a_certificate(random: Random) -> None:
    for problem, plan, schedule, taken_ns in fitting(random):
        if not isinstance(schedule, PeriodicSchedule):
            assert certificate(problem, plan, schedule, {}).proven.time_ns == taken_ns
