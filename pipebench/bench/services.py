"""What the host offers to a running component: other components by name."""

from pipebench.bench.components import Ready, ready_executor, ready_planner, ready_scheduler
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.context import Context
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference

SIMULATOR = "simulate"


class HostServices:
    """Services of one host; components are loaded once."""

    def __init__(self, host: Host, seed: int = 0, deadline_s: float | None = None) -> None:
        self.host = host
        self.seed = seed
        self.deadline_s = deadline_s
        self._ready: dict[tuple[str, str], Ready] = {}

    def _scheduler(self, name: str) -> Ready:
        key = ("schedulers", name)
        if key not in self._ready:
            self._ready[key] = ready_scheduler(self.host, name)
        return self._ready[key]

    def _executor(self, name: str) -> Ready:
        key = ("executors", name)
        if key not in self._ready:
            self._ready[key] = ready_executor(self.host, name)
        return self._ready[key]

    def context(self, ready: Ready) -> Context:
        """A context for one call of a component."""
        return Context(options=ready.options, seed=self.seed, deadline_s=self.deadline_s, services=self)

    def schedule(self, name: str, problem: Problem, plan: Plan) -> Schedule:
        """The schedule that the scheduler of that name makes. Raises PipebenchError for another type."""
        ready = self._scheduler(name)
        made = ready.call(problem, plan, self.context(ready))
        if not isinstance(made, FiniteSchedule | PeriodicSchedule):
            raise PipebenchError(f"scheduler {name!r} returned {type(made).__name__}, not a schedule")
        return made

    def execute(self, name: str, problem: Problem, plan: Plan, schedule: Schedule) -> Trace:
        """The trace of an executor."""
        ready = self._executor(name)
        trace = ready.call(problem, plan, schedule, self.context(ready))
        if not isinstance(trace, Trace):
            raise PipebenchError(f"executor {name!r} returned {type(trace).__name__}, not a trace")
        return trace

    def simulate(self, problem: Problem, plan: Plan, schedule: Schedule) -> Trace:
        """The trace of the suite's simulator."""
        return self.execute(SIMULATOR, problem, plan, schedule)

    def plan(self, name: str, problem: Problem) -> PlanResult:
        """The result of another planner."""
        ready = ready_planner(self.host, parse_reference(name))
        return as_result(ready.label, ready.call(problem, self.context(ready)))


def as_result(label: str, returned: object) -> PlanResult:
    """What a planner returned, as a PlanResult; a bare Plan is accepted. Raises PipebenchError for others."""
    if isinstance(returned, Plan):
        return PlanResult(plan=returned)
    if not isinstance(returned, PlanResult):
        raise PipebenchError(
            f"planner {label!r} returned {type(returned).__name__}, not a PlanResult",
            "return pipebench.domain.result.PlanResult(plan=…)",
        )
    return returned
