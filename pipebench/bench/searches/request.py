"""What a search is asked for and what it reports, as values: they cross from process to process."""

from typing import Literal

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value

SearchStatus = Literal["found", "infeasible", "timeout", "memory", "crashed", "invalid_plan", "unsupported"]


class SearchRequest(Value, frozen=True, kw_only=True):
    """One search. planner: as on the command line, options included. planning: the problem for the planner;
    scoring: the problem for the scheduler when it differs (an adapted plan), else None.

    repeat: warm searches to time; 0: the plan alone, and where there is none, no search for the memory that would
    do.
    deadline_s: a reading of time.monotonic(), which all processes of a machine share. bound_memory_bytes: a
    proven minimum, from where the smallest memory is searched when there is no plan.
    """

    planner: str
    planning: Problem
    scoring: Problem | None = None
    scheduler: str | None = None
    repeat: int = 1
    seed: int = 0
    deadline_s: float | None = None
    bound_memory_bytes: int = 0

    @property
    def target(self) -> Problem:
        """The problem that the plan is scored on."""
        return self.planning if self.scoring is None else self.scoring


class Sample(Value, frozen=True, kw_only=True):
    """One warm search: its CPU and wall seconds, and the CPU seconds of the calibrations right before it."""

    cpu_s: float
    wall_s: float
    calibration_cpu_s: dict[str, float] = {}


class Fitting(Value, frozen=True, kw_only=True):
    """A plan for devices of more memory than asked for, and that memory."""

    memory_bytes: int
    plan: Plan
    schedule: Schedule


class SearchReport(Value, frozen=True, kw_only=True):
    """What came of a search. `found`: result (without its schedule), plan and schedule are there; else reason says
    why not. claimed_s: with `infeasible`, what the planner expected of a partition that could not be scheduled.

    plan differs from result.plan where a partition is adapted to another regime. cold_s: wall seconds of the
    first search. samples: the warm ones, in order. compile_s: spent in the compiler, inside cold_s;
    compile_cpu_s: inside cold_cpu_s.
    final: nothing better follows; a report that is not final holds what is known so far.
    """

    status: SearchStatus
    reason: str = ""
    claimed_s: float | None = None
    result: PlanResult | None = None
    plan: Plan | None = None
    schedule: Schedule | None = None
    scheduler: str = ""
    cold_cpu_s: float = 0.0
    cold_s: float = 0.0
    samples: tuple[Sample, ...] = ()
    counters: dict[str, int] = {}
    smallest: Fitting | None = None
    compile_s: float = 0.0
    compile_cpu_s: float = 0.0
    final: bool = True
