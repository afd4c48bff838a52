"""One search: what a planner returns, and how long it took."""

import contextlib
import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.bench.components import Ready
from pipebench.bench.plugin_results import exact_counters, exact_result
from pipebench.bench.searches.timing import Duration, measure_duration
from pipebench.bench.services import HostServices
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached
from pipebench.hooks.descriptors import Scheduler
from pipebench.hooks.placements import placements_of

GRACE_S = 1.0
"""How long after the deadline a plan still counts: planners look at the clock now and then only."""


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """What a planner returned, with the lines that it noted in its context, and the work that it counted."""

    result: PlanResult
    counters: dict[str, int]


def search_once(
    services: HostServices, planner: Ready, problem: Problem, scheduler: str | None
) -> tuple[FoundPlan, Duration]:
    """One search. The duration is the planner's; looking at what it returns is not in it.

    scheduler: the one that the user names; the planner learns its name and the placements that it takes.
    """
    context = services.context(planner)
    if scheduler is not None:
        component = services.scheduler(scheduler).component
        assert isinstance(component, Scheduler)
        context.scheduler, context.placements = scheduler, placements_of(component.capabilities)
    plan_for = planner.load()
    with contextlib.redirect_stdout(sys.stderr), _no_collection():
        returned, duration = measure_duration(lambda: plan_for(problem, context))
    _check_time(services)
    result = _with_notes(exact_result(planner.label, returned), context)
    return FoundPlan(result, exact_counters(planner.label, context.counters)), duration


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
