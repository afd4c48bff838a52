"""What a search is asked for and what it reports, as values: they cross from process to process."""

from typing import Literal

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value

SearchStatus = Literal["found", "infeasible", "timeout", "memory", "crashed", "invalid_plan", "unsupported"]

TOY_S = 1.0
"""CPU seconds that a component may take on each toy problem, where search times are to be compared."""


class Searcher(Value, frozen=True, kw_only=True):
    """What a child knows of a search before the problem: whom to import, and which kernels to load.

    planner: as on the command line, options included.
    scheduler: the scheduler that the user names.
    regime: of the problems to come.
    toy_s: CPU seconds that the planner may take on each toy problem beside compiling, before its clock runs.
    """

    planner: str
    scheduler: str | None = None
    regime: RegimeMode
    seed: int = 0
    toy_s: float = TOY_S


class KernelPart(Value, frozen=True, kw_only=True):
    """One of the functions by which a planner has kernels compiled (`Planner.kernels`)."""

    planner: str
    function: str


class Start(Value, frozen=True, kw_only=True):
    """What a search begins with, and what its plan must be.

    seeds: plans, each with the name of the planner that made it.
    target: a framework that must be able to express the plan; empty: none.
    offered: the schedulers that alone may order it; empty: all.
    whole: whether it must use every device.
    progress: whether the search tells how far it is.
    bound_ns: what no plan of the problem is below; 0 where that is not known.
    """

    seeds: tuple[tuple[str, Plan], ...] = ()
    target: str = ""
    offered: tuple[str, ...] = ()
    whole: bool = False
    progress: bool = False
    bound_ns: int = 0


class SearchRequest(Value, frozen=True, kw_only=True):
    """One search.

    problem: the problem for the planner.
    limit_s: seconds from the moment that the request arrives.
    smallest: search the smallest memory with which there is a plan, instead of a plan.
    bound_memory_bytes: a proven minimum, from where the smallest memory is searched.
    start: what it begins with.
    """

    problem: Problem
    limit_s: float | None = None
    smallest: bool = False
    bound_memory_bytes: int = 0
    start: Start = Start()


class Progress(Value, frozen=True, kw_only=True):
    """How far a search is.

    done: the share that is done. message: in words.
    result: the best that it has so far, where it has told of no better one yet.
    """

    done: float
    message: str
    result: PlanResult | None = None


class Sample(Value, frozen=True, kw_only=True):
    """One warm search: its CPU and wall seconds, and the CPU seconds of the calibrations right before it."""

    cpu_s: float
    wall_s: float
    calibration_cpu_s: dict[str, float] = {}


class Fitting(Value, frozen=True, kw_only=True):
    """A plan for devices of more memory than the problem's, and that memory."""

    memory_bytes: int
    plan: Plan
    schedule: Schedule


class SearchReport(Value, frozen=True, kw_only=True):
    """What came of a search. It holds no time: the process that started the search keeps the clock.

    `found`: the result is there; else reason says why not.
    claimed_s: with `infeasible`, what the planner expected of a partition that could not be scheduled.
    smallest: what was found where the smallest memory was searched.
    compile_s: wall seconds of the compiler.
    """

    status: SearchStatus
    reason: str = ""
    claimed_s: float | None = None
    result: PlanResult | None = None
    counters: dict[str, int] = {}
    smallest: Fitting | None = None
    compile_s: float = 0.0
