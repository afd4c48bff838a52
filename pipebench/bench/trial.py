"""One trial: search, check, score. It always ends in a row with a status from the closed list."""

import time
from dataclasses import dataclass, field
from typing import Any

from pipebench.bench.components import Ready
from pipebench.bench.environment import with_load
from pipebench.bench.limits import wall_limit
from pipebench.bench.score import bound_fields, judge, plan_fields, time_fields, verdict_fields
from pipebench.bench.search import Found, search
from pipebench.bench.services import HostServices
from pipebench.bench.smallest_memory import smallest_memory
from pipebench.bench.workload import Workload
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.row import Row, Status
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.context import DeadlineReached
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.discovery import first_line
from pipebench.hooks.manager import Host


@dataclass(frozen=True, slots=True)
class Trial:
    """What to run. regime: where the plan is scored; scheduler None: the plan's own or the planner's default."""

    workload: Workload
    regime: RegimeMode
    planner: Ready
    scheduler: str | None = None
    executors: tuple[str, ...] = ("simulate",)
    repeat: int = 1
    timeout_s: float = 300.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The row, and the plan, schedule and traces behind it where there are any."""

    row: Row
    problem: Problem
    plan: Plan | None = None
    schedule: Schedule | None = None
    traces: tuple[Trace, ...] = field(default=())


def run_trial(host: Host, trial: Trial) -> Outcome:
    """Run one trial to its row."""
    component = trial.planner.component
    assert isinstance(component, Planner)
    regimes = component.capabilities.regimes
    scoring = trial.workload.problem(trial.regime)
    adapted = trial.regime not in regimes
    planning = trial.workload.problem(regimes[0]) if adapted else scoring
    common = _identity(trial, scoring, adapted)
    deadline = time.monotonic() + trial.timeout_s
    services = HostServices(host, seed=trial.seed, deadline_s=deadline)
    try:
        with wall_limit(trial.timeout_s):
            bounds = bound_fields(scoring)
            common.update(bounds)
            if adapted and trial.regime == "async":
                raise UnsupportedProblem(f"{trial.planner.label} plans for {', '.join(regimes)} only")
            found = search(services, trial.planner, planning, scoring, trial.scheduler, trial.repeat)
            return _scored(services, trial, scoring, found, common)
    except InfeasibleProblem as error:
        least = _least_memory(host, trial, planning, scoring, common, deadline)
        reason = _infeasible_reason(error, scoring, least, common.get("bound_memory_bytes"))
        return _failed(common, scoring, "infeasible", reason, smallest_memory_bytes=least)
    except UnsupportedProblem as error:
        return _failed(common, scoring, "unsupported", str(error))
    except DeadlineReached:
        return _failed(common, scoring, "timeout", f"no plan within {trial.timeout_s:g} s")
    except MemoryError as error:
        return _failed(common, scoring, "memory", first_line(error) or "out of memory")
    except InvalidValue as error:
        return _failed(common, scoring, "invalid_plan", str(error))
    except PipebenchError as error:
        return _failed(common, scoring, "crashed", str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a planner may raise anything, SystemExit included; it costs its own row only
        return _failed(common, scoring, "crashed", f"{type(error).__name__}: {first_line(error)}")


def _identity(trial: Trial, scoring: Problem, adapted: bool) -> dict[str, Any]:
    component, provider = trial.planner.component, trial.planner.provider
    assert isinstance(component, Planner)
    return {
        "model": trial.workload.model,
        "profile": scoring.profile.name,
        "cluster": scoring.cluster.name,
        "devices": scoring.cluster.size,
        "mini_batch": scoring.mini_batch,
        "regime": trial.regime,
        "problem_id": scoring.problem_id,
        "workload_id": scoring.workload_id,
        "planner": trial.planner.label,
        "scheduler": trial.scheduler or "",
        "fidelity": component.fidelity,
        "distribution": provider.distribution,
        "version": provider.version,
        "adapted": adapted,
        "environment": with_load(trial.seed),
    }


def _failed(common: dict[str, Any], problem: Problem, status: Status, reason: str, **more: Any) -> Outcome:
    line = " ".join(reason.split())
    return Outcome(Row(**common, **more, status=status, reason=line), problem)


def _scored(
    services: HostServices, trial: Trial, problem: Problem, found: Found, common: dict[str, Any]
) -> Outcome:
    result = found.result
    verdict = judge(problem, found.plan, found.schedule)
    common = {
        **common,
        "scheduler": found.scheduler,
        "search_cpu_s": found.cpu_s,
        "search_wall_s": found.wall_s,
        "search_cold_s": found.cold_s,
        "counters": found.counters,
        "claimed_s": result.claimed_s,
        "claimed_native": result.claimed_native,
        "claimed_unit": result.claimed_unit,
        "class_bound_s": result.lower_bound_s,
        "class_bound_scope": result.bound_scope,
        "termination": result.termination,
        **verdict_fields(verdict),
    }
    notices = (*result.notices, *found.notices)
    if verdict.status == "invalid":
        reason = verdict.witness.message if verdict.witness else verdict.reason
        row = Row(**common, notices=notices, status="invalid_plan", reason=reason)
        return Outcome(row, problem, found.plan, found.schedule)
    fields, traces, troubles = time_fields(services, problem, found.plan, found.schedule, trial.executors, common)
    shape = plan_fields(problem, found.plan, found.schedule)
    row = Row(**common, **fields, **shape, notices=(*notices, *troubles), status="ok")
    return Outcome(row, problem, found.plan, found.schedule, tuple(traces))


def _least_memory(
    host: Host, trial: Trial, planning: Problem, scoring: Problem, common: dict[str, Any], deadline_s: float
) -> int | None:
    from pipebench.bench.smallest_memory import with_memory

    def feasible(problem: Problem) -> bool:
        services = HostServices(host, seed=trial.seed, deadline_s=deadline_s)
        target = with_memory(scoring, problem.cluster.memory_bytes)
        try:
            found = search(services, trial.planner, problem, target, trial.scheduler, repeat=0)
        except (InfeasibleProblem, UnsupportedProblem):
            return False
        return judge(target, found.plan, found.schedule).status == "valid"

    left = deadline_s - time.monotonic()
    if left <= 0:
        return None
    try:
        with wall_limit(left):
            return smallest_memory(planning, feasible, int(common.get("bound_memory_bytes") or 0), deadline_s)
    except KeyboardInterrupt:
        raise
    except BaseException:  # the row is about the problem as asked; the search for more memory is a courtesy
        return None


def _infeasible_reason(
    error: InfeasibleProblem, problem: Problem, least_bytes: int | None, proven_bytes: int | None
) -> str:
    has = f"{error.message}; devices have {gigabytes(problem.cluster.memory_bytes)}"
    needs = f", this planner needs {gigabytes(least_bytes)}" if least_bytes else ""
    proven = f", any plan needs {gigabytes(proven_bytes)}" if proven_bytes else ""
    return f"{has}{needs}{proven}"


def gigabytes(amount: int) -> str:
    """Bytes as GB (10^9) with three digits."""
    return f"{amount / 1e9:.3g} GB"
