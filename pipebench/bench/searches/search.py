"""One search: what a planner returns, and how long it took."""

import contextlib
import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.bench.components import Ready, refuse_ranks
from pipebench.bench.plugin_results import exact_counters, exact_result, few_notices
from pipebench.bench.searches.request import Start
from pipebench.bench.searches.timing import Duration, measure_duration
from pipebench.bench.services import HostServices
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.formats.frameworks.targets import target_named
from pipebench.hooks.context import Context, DeadlineReached
from pipebench.hooks.descriptors import Scheduler
from pipebench.hooks.placements import placements_of

Report = Callable[[float, str], None]
"""Of the share that is done, and words."""
Offer = Callable[[PlanResult], None]
"""Of the best result so far."""
NOTHING = Start()
GRACE_S = 1.0
"""How long after the deadline a plan still counts: planners look at the clock now and then only."""


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """What a planner returned, with the lines that it noted in its context, and the work that it counted."""

    result: PlanResult
    counters: dict[str, int]


def search_once(
    services: HostServices,
    planner: Ready,
    problem: Problem,
    scheduler: str | None,
    start: Start = NOTHING,
    report: Report | None = None,
    offer: Offer | None = None,
) -> tuple[FoundPlan, Duration]:
    """One search. The duration is the planner's; looking at what it returns is not in it.

    scheduler: the one that the user names; the planner learns its name and the placements that it takes.
    start: what the planner begins with. report: told how far it is.
    offer: told of what it has so far.
    """
    context = services.context(planner)
    context.seeds, context.offered, context.bound_ns = start.seeds, start.offered, start.bound_ns
    if start.target or start.whole:
        context.admits = _admission(start)
    if report is not None:
        context.report = report
    if offer is not None:
        context.offer = lambda result: offer(exact_result(planner.label, result))
    if scheduler is not None:
        component = services.scheduler(scheduler).component
        assert isinstance(component, Scheduler)
        context.scheduler, context.placements = scheduler, placements_of(component.capabilities)
    refuse_ranks(planner.component, problem)
    plan_for = planner.load()
    with contextlib.redirect_stdout(sys.stderr), _no_collection():
        returned, duration = measure_duration(lambda: plan_for(problem, context))
    _check_time(services)
    result = _with_notes(exact_result(planner.label, returned), context)
    return FoundPlan(result, exact_counters(planner.label, context.counters)), duration


def _admission(start: Start) -> Callable[[Problem, Plan], bool]:
    """Whether a plan counts: its framework can express it, and it uses every device where it must."""
    target = target_named(start.target) if start.target else None

    def admits(problem: Problem, plan: Plan) -> bool:
        if start.whole and plan.devices_used < problem.cluster.size:
            return False
        return target is None or not target.refusal(problem, plan)

    return admits


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
    return replace(result, notices=few_notices((*result.notices, *context.notices)))
