"""One search: planner, then scheduler where the plan brings no schedule."""

import contextlib
import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.algorithms.micro_batches_adapted import adapt_micro_batch
from pipebench.bench.components import Ready
from pipebench.bench.plugin_results import exact_counters, exact_result, exact_schedule
from pipebench.bench.searches.timing import Duration, measure_duration
from pipebench.bench.services import HostServices
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.hooks.context import Context, DeadlineReached
from pipebench.hooks.descriptors import Planner, Scheduler
from pipebench.hooks.placements import placements_of

GRACE_S = 1.0
"""How long after the deadline a plan still counts: planners look at the clock now and then only."""


@dataclass(frozen=True, slots=True)
class ScheduledPlan:
    """A plan with its schedule; plan differs from result.plan where it is adapted to another regime.

    notes: lines that the planner wrote with `context.note`.
    """

    result: PlanResult
    plan: Plan
    schedule: Schedule
    scheduler: str
    counters: dict[str, int]
    notes: tuple[str, ...] = ()


def search_once(
    services: HostServices, planner: Ready, planning: Problem, scoring: Problem, scheduler: str | None
) -> tuple[ScheduledPlan, Duration]:
    """One search. The duration is the planner's and the scheduler's; looking at what they return is not in it.

    planning and scoring are the same problem unless the planner is adapted to another regime: then its
    partition is taken, with the micro-batch that suits it there, and the scheduler of the scoring regime orders
    it. What is in flight is the scheduler's business too, where it is not the planner's own.
    scheduler: the planner learns its name and the placements that it takes.
    """
    context = services.context(planner)
    if scheduler is not None:
        component = services.scheduler(scheduler).component
        assert isinstance(component, Scheduler)
        context.scheduler, context.placements = scheduler, placements_of(component.capabilities)
    plan_for = planner.load()
    with contextlib.redirect_stdout(sys.stderr), _no_collection():
        returned, duration = measure_duration(lambda: plan_for(planning, context))
    _check_time(services)
    result = _with_notes(exact_result(planner.label, returned), context)
    assert isinstance(planner.component, Planner)
    default = planner.component.default_scheduler.get(scoring.regime.mode, "")
    plan = result.plan
    if planning.regime.mode != scoring.regime.mode:
        asks = services.host_context(context.counters)
        plan, choice = measure_duration(lambda: adapt_micro_batch(scoring, result.plan, asks))
        duration += choice
        result = _without_claims(result, plan)
    elif scheduler not in (None, default):
        plan = _without_flight(plan)
    counters = exact_counters(planner.label, context.counters)
    notes = tuple(map(str, context.notices))
    if result.schedule is not None and scheduler is None:
        return ScheduledPlan(result, plan, result.schedule, result.scheduler or "own", counters, notes), duration
    name = scheduler or default
    if not name:
        raise UnsupportedProblem(f"{planner.label} names no scheduler for {scoring.regime.mode}")
    services.scheduler(name).load()
    with _no_collection():
        made, ordering = measure_duration(lambda: services.call_scheduler(name, scoring, plan))
    return ScheduledPlan(result, plan, exact_schedule(name, made), name, counters, notes), duration + ordering


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """The garbage of what ran before is nobody's search time, and no collection starts in the middle."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _check_time(services: HostServices) -> None:
    if services.deadline_s is not None and time.monotonic() > services.deadline_s + GRACE_S:
        raise DeadlineReached("the time limit was reached")


def _with_notes(result: PlanResult, context: Context) -> PlanResult:
    """The result with the lines that the planner noted in its context."""
    return replace(result, notices=(*result.notices, *map(str, context.notices)))


def _without_flight(plan: Plan) -> Plan:
    """The partition alone: how many micro-batches are in flight is the scheduler's business."""
    return replace(plan, stages=tuple(replace(stage, in_flight=0) for stage in plan.stages))


def _without_claims(result: PlanResult, plan: Plan) -> PlanResult:
    """A partition in another regime: what was claimed, proven and scheduled was for the planner's own."""
    sizes = [sorted({stage.micro_batch for stage in stages}) for stages in (result.plan.stages, plan.stages)]
    was, now = (", ".join(map(str, each)) for each in sizes)
    changed = (f"adapted with micro-batch {now}, planned with {was}",) if was != now else ()
    return PlanResult(plan=result.plan, notices=(*result.notices, *changed))
