"""One search: planner, then scheduler where the plan brings no schedule; cold and warm times."""

import contextlib
import statistics
import sys
import time
from dataclasses import dataclass, replace

from msgspec.structs import replace as replace_fields

from pipebench.bench.clock import Duration, timed
from pipebench.bench.components import Ready
from pipebench.bench.returned import exact_counters, exact_result, exact_schedule
from pipebench.bench.services import HostServices
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.hooks.context import DeadlineReached
from pipebench.hooks.descriptors import Planner

LONG_SEARCH_S = 10.0


@dataclass(frozen=True, slots=True)
class Found:
    """A plan with its schedule. cpu_s, wall_s: warm medians; cold_s: wall of the first search."""

    result: PlanResult
    plan: Plan
    schedule: Schedule
    scheduler: str
    cpu_s: float
    wall_s: float
    cold_s: float
    counters: dict[str, int]
    notices: tuple[str, ...] = ()


def search(
    services: HostServices,
    planner: Ready,
    planning: Problem,
    scoring: Problem,
    scheduler: str | None,
    repeat: int = 1,
) -> Found:
    """Search once cold and `repeat` times warm; a search over 10 s is not repeated.

    planning and scoring are the same problem unless the planner is adapted to another regime: then its
    partition is taken and the scheduler of the scoring regime orders it.
    """
    found, cold = _once(services, planner, planning, scoring, scheduler)
    warm: list[Duration] = []
    long = cold.wall_s > LONG_SEARCH_S
    for _ in range(0 if long else repeat):
        if services.deadline_s is not None and time.monotonic() + cold.wall_s > services.deadline_s:
            break
        found, duration = _once(services, planner, planning, scoring, scheduler)
        warm.append(duration)
    measured = warm or [cold]
    found = replace(
        found,
        cpu_s=statistics.median(d.cpu_s for d in measured),
        wall_s=statistics.median(d.wall_s for d in measured),
        cold_s=cold.wall_s,
    )
    return found if warm else replace(found, notices=(*found.notices, "search time is cold: it ran once"))


def _once(
    services: HostServices, planner: Ready, planning: Problem, scoring: Problem, scheduler: str | None
) -> tuple[Found, Duration]:
    """One search. The duration is the planner's and the scheduler's; looking at what they return is not in it."""
    context = services.context(planner)
    with contextlib.redirect_stdout(sys.stderr):
        returned, duration = timed(lambda: planner.call(planning, context))
    _check_time(services)
    result = exact_result(planner.label, returned)
    counters = exact_counters(planner.label, context.counters)
    adapted = planning.regime.mode != scoring.regime.mode
    plan = _without_flight(result.plan) if adapted else result.plan
    if result.schedule is not None and scheduler is None and not adapted:
        found = Found(result, plan, result.schedule, result.scheduler or "own", 0.0, 0.0, 0.0, counters)
        return found, duration
    assert isinstance(planner.component, Planner)
    name = scheduler or planner.component.default_scheduler.get(scoring.regime.mode, "")
    if not name:
        raise UnsupportedProblem(f"{planner.label} names no scheduler for {scoring.regime.mode}")
    services.scheduler(name)
    made, ordering = timed(lambda: services.call_scheduler(name, scoring, plan))
    schedule = exact_schedule(name, made)
    return Found(result, plan, schedule, name, 0.0, 0.0, 0.0, counters), duration + ordering


def _check_time(services: HostServices) -> None:
    if services.deadline_s is not None and time.monotonic() > services.deadline_s + 1.0:
        raise DeadlineReached("the time limit was reached")


def _without_flight(plan: Plan) -> Plan:
    """The partition alone: how many micro-batches are in flight is the other regime's business."""
    return replace_fields(plan, stages=tuple(replace_fields(stage, in_flight=0) for stage in plan.stages))
