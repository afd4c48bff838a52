"""Do what a search request asks, whatever happens; every report is handed to `send` as soon as it is known."""

import math
import traceback
from collections.abc import Callable

from msgspec.structs import replace

from pipebench.bench.components import Ready
from pipebench.bench.score import judge
from pipebench.bench.searches.request import Fitting, Sample, SearchReport, SearchRequest, SearchStatus
from pipebench.bench.searches.search import search_again, search_once
from pipebench.bench.searches.smallest_memory import smallest_memory, with_memory
from pipebench.bench.searches.timing import CompilationWatch, Duration
from pipebench.bench.services import HostServices
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, PipebenchError, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.hooks.context import DeadlineReached
from pipebench.hooks.discovery import first_line
from pipebench.hooks.manager import Host

Send = Callable[[SearchReport], None]


def perform(host: Host, planner: Ready, request: SearchRequest, send: Send) -> None:
    """Search; the last report sent is final. Raises nothing but KeyboardInterrupt."""
    services = HostServices(host, seed=request.seed, deadline_s=request.deadline_s)
    try:
        _search(services, planner, request, send)
    except InfeasibleProblem as error:
        report = SearchReport(
            status="infeasible", reason=_line(error.message), claimed_s=_claim(error.claimed_s), final=False
        )
        if request.repeat == 0:  # the plan alone was asked for
            send(replace(report, final=True))
            return
        send(report)
        send(replace(report, smallest=_smallest(services, planner, request), final=True))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a planner may raise anything, SystemExit included; it costs its own row only
        if not isinstance(error, PipebenchError):
            traceback.print_exc()
        send(failure(error))


def failure(error: BaseException) -> SearchReport:
    """The report of a search that ended in an error."""
    status, reason = _verdict(error)
    return SearchReport(status=status, reason=_line(reason))


def _line(text: str) -> str:
    """One line that can be written: a stranger's message may hold anything, half characters too."""
    return " ".join(text.encode(errors="replace").decode().split())


def _claim(seconds: object) -> float | None:
    """A planner's claim as a number, None where it is none."""
    return float(seconds) if isinstance(seconds, float | int) and math.isfinite(seconds) else None


def _verdict(error: BaseException) -> tuple[SearchStatus, str]:
    if isinstance(error, UnsupportedProblem):
        return "unsupported", str(error)
    if isinstance(error, DeadlineReached):
        return "timeout", str(error)
    if isinstance(error, MemoryError):
        return "memory", first_line(error) or "out of memory"
    if isinstance(error, InvalidValue):
        return "invalid_plan", str(error)
    if isinstance(error, PipebenchError):
        return "crashed", str(error)
    return "crashed", f"{type(error).__name__}: {first_line(error)}".removesuffix(": ")


def _search(services: HostServices, planner: Ready, request: SearchRequest, send: Send) -> None:
    target = request.target
    planner.load()
    with CompilationWatch() as compilation:
        found, cold = search_once(services, planner, request.planning, target, request.scheduler)
    report = SearchReport(
        status="found",
        result=replace(found.result, schedule=None),
        plan=found.plan,
        schedule=found.schedule,
        scheduler=found.scheduler,
        cold_cpu_s=cold.cpu_s,
        cold_s=cold.wall_s,
        counters=found.counters,
        compile_s=compilation.seconds,
        compile_cpu_s=compilation.cpu_seconds,
        final=request.repeat == 0,
    )
    send(report)
    if request.repeat == 0:
        return

    def again() -> Duration:
        return search_once(services, planner, request.planning, target, request.scheduler)[1]

    samples: list[Sample] = []
    for sample in search_again(again, request.repeat, cold.wall_s - compilation.seconds, request.deadline_s):
        samples.append(sample)
    send(replace(report, samples=tuple(samples), final=True))


def _smallest(services: HostServices, planner: Ready, request: SearchRequest) -> Fitting | None:
    """The least memory with which the planner finds a plan that the check accepts, and that plan."""
    found: list[Fitting] = []

    def peak_bytes(problem: Problem) -> int:
        """Of the plan that the planner finds, 0 where it finds none."""
        memory_bytes = problem.cluster.memory_bytes
        target = with_memory(request.target, memory_bytes)
        try:
            made, _ = search_once(services, planner, problem, target, request.scheduler)
        except (InfeasibleProblem, UnsupportedProblem):
            return 0
        verdict = judge(target, made.plan, made.schedule)
        if verdict.status != "valid":
            return 0
        found.append(Fitting(memory_bytes=memory_bytes, plan=made.plan, schedule=made.schedule))
        return max(1, *verdict.peak_bytes.values())

    deadline_s = math.inf if request.deadline_s is None else request.deadline_s
    try:
        smallest_memory(request.planning, peak_bytes, request.bound_memory_bytes, deadline_s)
    except KeyboardInterrupt:
        raise
    except BaseException:  # the row is about the problem as asked; the search for more memory is a courtesy
        pass
    return min(found, key=lambda fitting: fitting.memory_bytes, default=None)
