"""One search: planner, then scheduler where the plan brings no schedule; cold and warm times."""

import contextlib
import statistics
import sys
import time
from dataclasses import dataclass, replace

from msgspec.structs import replace as replace_fields

from pipebench.bench.clock import Duration, timed
from pipebench.bench.components import Ready
from pipebench.bench.services import HostServices, as_result
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
    first, cold = timed(lambda: _once(services, planner, planning, scoring, scheduler))
    warm: list[Duration] = []
    long = cold.wall_s > LONG_SEARCH_S
    for _ in range(0 if long else repeat):
        if services.deadline_s is not None and time.monotonic() + cold.wall_s > services.deadline_s:
            break
        first, duration = timed(lambda: _once(services, planner, planning, scoring, scheduler))
        warm.append(duration)
    measured = warm or [cold]
    found = replace(
        first,
        cpu_s=statistics.median(d.cpu_s for d in measured),
        wall_s=statistics.median(d.wall_s for d in measured),
        cold_s=cold.wall_s,
    )
    return found if warm else replace(found, notices=(*found.notices, "search time is cold: it ran once"))


def _once(
    services: HostServices, planner: Ready, planning: Problem, scoring: Problem, scheduler: str | None
) -> Found:
    context = services.context(planner)
    with contextlib.redirect_stdout(sys.stderr):
        result = as_result(planner.label, planner.call(planning, context))
    if services.deadline_s is not None and time.monotonic() > services.deadline_s + 1.0:
        raise DeadlineReached("the time limit was reached")
    adapted = planning.regime.mode != scoring.regime.mode
    plan = _without_flight(result.plan) if adapted else result.plan
    if result.schedule is not None and scheduler is None and not adapted:
        name, schedule = result.scheduler or "own", result.schedule
    else:
        assert isinstance(planner.component, Planner)
        name = scheduler or planner.component.default_scheduler.get(scoring.regime.mode, "")
        if not name:
            raise UnsupportedProblem(f"{planner.label} names no scheduler for {scoring.regime.mode}")
        schedule = services.schedule(name, scoring, plan)
    return Found(result, plan, schedule, name, 0.0, 0.0, 0.0, dict(context.counters))


def _without_flight(plan: Plan) -> Plan:
    """The partition alone: how many micro-batches are in flight is the other regime's business."""
    return replace_fields(plan, stages=tuple(replace_fields(stage, in_flight=0) for stage in plan.stages))
