"""Do what a search request asks, whatever happens: the work of a search's process."""

import gc
import math
import os
import time
import traceback
from dataclasses import replace as replace_load

import msgspec
from msgspec.structs import replace

from pipebench.bench.components import Ready, ready_planner
from pipebench.bench.score import judge
from pipebench.bench.searches.isolation.child import Channel
from pipebench.bench.searches.request import (
    Fitting,
    KernelPart,
    Progress,
    Searcher,
    SearchReport,
    SearchRequest,
    SearchStatus,
)
from pipebench.bench.searches.search import search_once
from pipebench.bench.searches.smallest_memory import smallest_memory
from pipebench.bench.searches.timing import CompilationWatch
from pipebench.bench.searches.toys import toy_alarm, toys
from pipebench.bench.services import HostServices
from pipebench.documents.printable import one_line
from pipebench.domain.errors import (
    InfeasibleProblem,
    InvalidValue,
    PipebenchError,
    PluginFailed,
    PluginNotLoaded,
    UnsupportedProblem,
)
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import DeadlineReached
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.discovery import cause, first_line
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from pipebench.system.files import printing_nothing
from pipebench.system.removal import remove_folder

_SEARCHERS, _REQUESTS = msgspec.msgpack.Decoder(Searcher), msgspec.msgpack.Decoder(SearchRequest)
_PARTS = msgspec.msgpack.Decoder(KernelPart)
WORK = "pipebench.bench.searches.perform:search_errand"
TOLD_S = 0.2
"""Progress is told this often at most."""
OFFERED_S = 1.0
"""The best plan so far is sent this often at most: it may be long."""
COMPILATION = "pipebench.bench.searches.perform:kernels_errand"


def search_errand(host: Host, given: bytes, channel: Channel) -> None:
    """Import the planner, run it on toy problems, receive the request, search, and send one report.

    given: a Searcher. What `receive` says about it: seconds in the compiler.
    """
    searcher = _SEARCHERS.decode(given)
    try:
        with CompilationWatch() as compilation:
            planner = ready_planner(host, parse_reference(searcher.planner))
            planner.load()
            services = HostServices(host, seed=searcher.seed)
            component = planner.component
            if not component.names_files(planner.options):  # else it stays in the user's folder
                os.chdir(channel.folder)
            if isinstance(component, Planner):
                for part in component.kernel_parts:
                    host.load(replace_load(component, load=part))()
            if planner.kernels:
                _play(services, planner, searcher, compilation)
                _empty(channel.folder)
                gc.collect()
    except BaseException as error:  # a planner's import may raise anything
        _print_traceback(error)
        channel.send(msgspec.msgpack.encode(failure(error)))
        return
    gc.freeze()
    payload = channel.receive(msgspec.msgpack.encode(compilation.seconds))
    if not payload:
        return
    request = _REQUESTS.decode(payload)
    try:
        services = HostServices(host, seed=searcher.seed)
        report = perform(
            services,
            planner,
            searcher.scheduler,
            request,
            teller=_Teller(channel) if request.start.progress else None,
        )
        sent = msgspec.msgpack.encode(report)
    except (OverflowError, UnicodeEncodeError) as error:
        who = f"planner {searcher.planner!r}"
        sent = msgspec.msgpack.encode(failure(PluginFailed(f"{who} returned what no row can hold: {error}")))
    except BaseException as error:  # an interrupt can only be the planner's own doing here
        sent = msgspec.msgpack.encode(failure(error))
    channel.send(sent)


class _Teller:
    """Sends on what the planner reports, and the best plan that it has."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told_s = self._sent_s = -math.inf
        self._done, self._message = 0.0, ""
        self._result: PlanResult | None = None

    def report(self, done: float, message: str) -> None:
        """How far the search is."""
        self._done, self._message = done, one_line(message)
        self._send(TOLD_S)

    def offer(self, result: PlanResult) -> None:
        """What it has so far."""
        self._result = result
        if time.monotonic() - self._sent_s >= OFFERED_S:
            self._send(0.0)

    def _send(self, apart_s: float) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s < apart_s:
            return
        result = self._result if now_s - self._sent_s >= OFFERED_S else None
        if result is not None:
            self._result, self._sent_s = None, now_s
        self._told_s = now_s
        told = Progress(done=self._done, message=self._message, result=result)
        self._channel.progress(msgspec.msgpack.encode(told))


def kernels_errand(host: Host, given: bytes, channel: Channel) -> None:
    """Compile some kernels of a planner. given: a KernelPart."""
    del channel
    part = _PARTS.decode(given)
    component = ready_planner(host, parse_reference(part.planner)).component
    host.load(replace_load(component, load=part.function))()


def _play(services: HostServices, planner: Ready, searcher: Searcher, compilation: CompilationWatch) -> None:
    """Search on toy problems; what comes of it, and what is printed, does not matter."""
    with printing_nothing(1, 2):
        for problem in toys(searcher.regime):
            toy = SearchRequest(problem=problem)
            try:
                with toy_alarm(compilation, searcher.toy_s):
                    report = perform(services, planner, searcher.scheduler, toy, quiet=True)
            except BaseException:  # the alarm, or an interrupt of the planner's own making
                break
            if report.status == "timeout":
                break


def _empty(folder: str) -> None:
    """The search starts in an empty folder, whatever the toy problems left there."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            remove_folder(entry.path)
        else:
            os.unlink(entry.path)


def perform(
    services: HostServices,
    planner: Ready,
    scheduler: str | None,
    request: SearchRequest,
    quiet: bool = False,
    teller: "_Teller | None" = None,
) -> SearchReport:
    """Search. Raises nothing but KeyboardInterrupt.

    quiet: a planner's error is not printed. teller: told how far the search is.
    """
    services.limit(request.limit_s)
    with CompilationWatch() as compilation:
        report = _report(services, planner, scheduler, request, quiet, teller)
    return replace(report, compile_s=compilation.seconds)


def _report(
    services: HostServices,
    planner: Ready,
    scheduler: str | None,
    request: SearchRequest,
    quiet: bool,
    teller: "_Teller | None",
) -> SearchReport:
    if request.smallest:
        fitting = _smallest(services, planner, scheduler, request)
        return SearchReport(status="infeasible", smallest=fitting)
    try:
        told = (None, None) if teller is None else (teller.report, teller.offer)
        found, _ = search_once(services, planner, request.problem, scheduler, request.start, *told)
    except InfeasibleProblem as error:
        return SearchReport(status="infeasible", reason=one_line(str(error)), claimed_s=_claim(error.claimed_s))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a planner may raise anything, SystemExit included; it costs its own row only
        if not quiet:
            _print_traceback(error)
        return failure(error)
    return SearchReport(status="found", result=found.result, counters=found.counters)


def _print_traceback(error: BaseException) -> None:
    """Of what the planner's code raised, also while it was imported; an error of pipebench says all itself."""
    raised = error.__cause__ if isinstance(error, PluginNotLoaded) else error
    if raised is not None and not isinstance(raised, PipebenchError):
        traceback.print_exception(raised)


def failure(error: BaseException) -> SearchReport:
    """The report of a search that ended in an error."""
    status, reason = _verdict(error)
    return SearchReport(status=status, reason=one_line(reason))


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
    return "crashed", cause(error)


def _smallest(
    services: HostServices, planner: Ready, scheduler: str | None, request: SearchRequest
) -> Fitting | None:
    """The least memory with which the planner finds a plan that the check accepts, and that plan.

    In the order that comes with the plan, else under the scheduler that the user names or the planner's default.
    """
    assert isinstance(planner.component, Planner)
    name = scheduler or planner.component.default_scheduler.get(request.problem.regime.mode, "")
    fittings: list[Fitting] = []

    def peak_bytes(problem: Problem) -> int:
        """Of the plan that the planner finds, 0 where it finds none."""
        memory_bytes = problem.cluster.memory_bytes
        if memory_bytes == request.problem.cluster.memory_bytes:
            return 0  # this is the problem that has no plan
        try:
            result = search_once(services, planner, problem, scheduler)[0].result
            schedule = result.schedule if scheduler is None else None
            schedule = schedule or services.schedule(name, problem, result.plan)
        except (InfeasibleProblem, UnsupportedProblem):
            return 0
        verdict = judge(problem, result.plan, schedule)
        if verdict.status != "valid":
            return 0
        fittings.append(Fitting(memory_bytes=memory_bytes, plan=result.plan, schedule=schedule))
        return max(1, *verdict.peak_bytes.values())

    deadline_s = math.inf if services.deadline_s is None else services.deadline_s
    try:
        smallest_memory(request.problem, peak_bytes, request.bound_memory_bytes, deadline_s)
    except KeyboardInterrupt:
        raise
    except BaseException:  # the row is about the problem as given; the search for more memory is a courtesy
        pass
    return min(fittings, key=lambda fitting: fitting.memory_bytes, default=None)
