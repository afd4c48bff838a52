"""The searches of one trial, each in a process of its own: first once, then warm; and their clock."""

import math
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import replace as replace_search
from functools import cache

import msgspec
from msgspec.structs import replace

from pipebench.bench.components import Ready
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import (
    child_environment,
    errand_folder,
    isolation,
)
from pipebench.bench.searches.isolation.conversation import ChildExit, Handover
from pipebench.bench.searches.isolation.wire import BrokenWire
from pipebench.bench.searches.perform import COMPILATION, WORK, perform
from pipebench.bench.searches.request import (
    TOY_S,
    Fitting,
    KernelPart,
    Progress,
    Sample,
    Searcher,
    SearchReport,
    SearchRequest,
    SearchStatus,
)
from pipebench.bench.searches.search import GRACE_S
from pipebench.bench.searches.timing import measure_duration
from pipebench.bench.services import HostServices
from pipebench.documents.printable import one_line
from pipebench.domain.result import PlanResult
from pipebench.hooks.manager import Host
from pipebench.system.endings import signal_name

PREPARE_S = 300.0
"""For importing a planner, compiling its kernels and running it on toy problems; not part of the limit."""
LEAST_S = 10.0
"""What a search has at least, import and kernels included, where it is to be stopped at a moment."""
LONG_SEARCH_S = 10.0
"""A search that takes longer is not repeated."""
WARM_FACTOR, WARM_MARGIN_S = 3.0, 0.1
"""How much more CPU the first search may use than the later ones before a row says so."""
NOTED_PREPARE_S = 2.0
"""CPU seconds before the problem is known, from which on a row says so."""
HandOver = Callable[[bytes], bytes | None]
"""As `Handover.payload`."""
Heard = Callable[[str], None]
"""Told in words how far a search is."""
ENDED_FROM_OUTSIDE: tuple[SearchStatus, ...] = ("timeout", "memory", "crashed")
"""After these a plan that the search has offered counts."""
DYING_OF_MEMORY = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Of each search: seconds, and bytes beyond what the fork server has (0: no limit); repeat: warm searches.

    stops_at: on the monotonic clock, when searches in processes are stopped; planners do not learn of it, so that
    one that is not stopped gives what it gives without.
    """

    timeout_s: float
    memory_bytes: int = 0
    repeat: int = 1
    stops_at: float = math.inf


class SearchStopped(Exception):
    """The moment came at which searches are stopped: nothing is known of the planner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSearch:
    """What came of the searches of a trial.

    report: of the first search, a failure where what it left behind forbids its plan.
    output: the tail of what was printed. peak_bytes: resident memory of the first search's process.
    first: CPU and wall seconds of the first search. samples: the warm ones, in order.
    prepare_s: wall seconds before the first search: import, kernels, toy problems.
    compile_s: wall seconds of the compiler, before and in the first search.
    notices: what the clock has to say.
    clocked: whether the clock was read. It was not where the process that keeps it went down with the search.
    """

    report: SearchReport
    output: str = ""
    peak_bytes: int | None = None
    first: Sample = field(default_factory=lambda: Sample(cpu_s=0.0, wall_s=0.0))
    samples: tuple[Sample, ...] = ()
    prepare_s: float = 0.0
    compile_s: float = 0.0
    notices: tuple[str, ...] = ()
    clocked: bool = True

    @property
    def wall_s(self) -> float:
        """Of all searches."""
        return self.first.wall_s + sum(sample.wall_s for sample in self.samples)


def timed_search(
    host: Host,
    planner: Ready,
    searcher: Searcher,
    request: SearchRequest,
    limits: SearchLimits,
    heard: Heard | None = None,
) -> TimedSearch:
    """Search, each time in a fresh process unless the planner is the host's own. heard: told how far it is.

    Where there is no plan, the report says with which memory there would be one. Raises SearchStopped.
    """
    searches = (
        _SearchesHere(host, planner, searcher)
        if planner.here
        else _SearchesInChildren(host, planner, searcher, limits, heard)
    )
    request = replace(request, limit_s=limits.timeout_s)
    began_s = time.monotonic()
    first = searches.search(request, limits.timeout_s)
    report = first.report
    if report.status == "infeasible" and limits.repeat > 0:
        left_s = limits.timeout_s - (time.monotonic() - began_s - first.prepare_s)
        report = replace(report, smallest=_smallest(searches, request, left_s))
        return replace_search(first, report=report)
    if report.status != "found" or first.first.wall_s > LONG_SEARCH_S:
        return first
    samples: list[Sample] = []
    spent_s = first.first.wall_s
    while len(samples) < limits.repeat and spent_s + first.first.wall_s <= limits.timeout_s:
        try:
            again = searches.search(request, limits.timeout_s - spent_s, calibrate=True)
        except SearchStopped:
            break
        if again.report.status != "found":
            break
        samples.append(again.first)
        spent_s += again.first.wall_s
    notices = (*first.notices, *_notices(first.first, samples))
    return replace_search(first, samples=tuple(samples), notices=notices)


def smallest_fitting(
    host: Host, planner: Ready, searcher: Searcher, request: SearchRequest, limits: SearchLimits
) -> Fitting | None:
    """The least memory with which the planner has a valid plan, for a plan that no scheduler could order.

    Raises SearchStopped.
    """
    searches = (
        _SearchesHere(host, planner, searcher)
        if planner.here
        else _SearchesInChildren(host, planner, searcher, limits)
    )
    return _smallest(searches, request, limits.timeout_s)


def compile_kernels(host: Host, planner: Ready, searcher: Searcher) -> None:
    """Compile the kernels of a planner and keep them, by a child that sees toy problems alone."""
    if planner.kernels:
        searcher = replace(searcher, toy_s=TOY_S)  # so that it compiles all that any trial will need
        _SearchesInChildren(host, planner, searcher, SearchLimits(timeout_s=0.0)).compile()


def compile_part(host: Host, planner: Ready, function: str) -> None:
    """Compile what one function of a planner's compiles and keep it. What fails is compiled with the rest."""
    part = KernelPart(planner=planner.component.name, function=function)
    errand = Errand(
        work=COMPILATION,
        given=msgspec.msgpack.encode(part),
        index=host.index(),
        folder=errand_folder(),
        environment=child_environment(),
        memory_bytes=0,
    )
    owner = planner.kernel_owner
    if isolation().run(errand, PREPARE_S, owner=owner).code == 0:
        isolation().folders.keep_kernels(owner)


def _smallest(
    searches: "_SearchesInChildren | _SearchesHere", request: SearchRequest, left_s: float
) -> Fitting | None:
    if left_s <= 0:
        return None
    return searches.search(replace(request, smallest=True, limit_s=left_s), left_s).report.smallest


def _prepare_notices(prepare_cpu_s: float) -> tuple[str, ...]:
    if prepare_cpu_s < NOTED_PREPARE_S:
        return ()
    return (f"{prepare_cpu_s:.3g} s of CPU were used before the problem was known; no search time holds them",)


def _notices(first: Sample, samples: list[Sample]) -> tuple[str, ...]:
    if not samples:
        return ()
    later_s = sorted(sample.cpu_s for sample in samples)[len(samples) // 2]
    if first.cpu_s <= WARM_FACTOR * later_s + WARM_MARGIN_S:
        return ()
    return (f"the first search used {first.cpu_s:.3g} s of CPU, later ones {later_s:.3g} s",)


class _SearchesHere:
    """Searches of the host's own planners, in this process, by its own clock."""

    def __init__(self, host: Host, planner: Ready, searcher: Searcher) -> None:
        self._host, self._planner, self._searcher = host, planner, searcher

    def search(self, request: SearchRequest, limit_s: float, calibrate: bool = False) -> TimedSearch:
        """One search, right after the calibrations where they are asked for."""
        del limit_s
        services = HostServices(self._host, seed=self._searcher.seed)
        beside = _calibrations() if calibrate else {}
        report, spent = measure_duration(
            lambda: perform(services, self._planner, self._searcher.scheduler, request)
        )
        first = Sample(cpu_s=spent.cpu_s, wall_s=spent.wall_s, calibration_cpu_s=beside)
        return TimedSearch(report=report, first=first)


class _SearchesInChildren:
    """Searches in children of the fork server, timed from outside."""

    def __init__(
        self, host: Host, planner: Ready, searcher: Searcher, limits: SearchLimits, heard: Heard | None = None
    ) -> None:
        self._planner, self._heard = planner, heard
        self._index = host.index()
        self._limits = limits
        self._stops_at = max(limits.stops_at, time.monotonic() + LEAST_S)
        self._given = msgspec.msgpack.encode(searcher)
        self._encoded: tuple[SearchRequest, bytes] | None = None
        self._offered: list[PlanResult] = []
        self._interrupted = False

    def search(self, request: SearchRequest, limit_s: float, calibrate: bool = False) -> TimedSearch:
        """One search. Kernels that are not on disk yet are compiled first, by a child that sees no problem."""
        payload, known = self._payload(request), self._given in isolation().compiled
        began_s = time.monotonic()
        ended, compiled_s = after_compiling(
            lambda hand_over: self._run(hand_over, limit_s, calibrate), payload, None if known else self._keep
        )
        report = self._with_offered(self._report(ended, limit_s))
        return TimedSearch(
            report=report,
            output=ended.output,
            peak_bytes=ended.peak_bytes or None,
            first=Sample(cpu_s=ended.cpu_s, wall_s=ended.wall_s, calibration_cpu_s=ended.calibration_cpu_s),
            prepare_s=max(0.0, time.monotonic() - began_s - ended.wall_s),
            compile_s=compiled_s + report.compile_s,
            notices=_prepare_notices(ended.prepare_cpu_s),
            clocked=not ended.lost,
        )

    def _payload(self, request: SearchRequest) -> bytes:
        """The request as it is handed over; warm searches ask the same as the first one."""
        if self._encoded is None or self._encoded[0] is not request:
            self._encoded = request, msgspec.msgpack.encode(request)
        return self._encoded[1]

    def compile(self) -> None:
        """Compile kernels that are not on disk yet."""
        if self._given not in isolation().compiled and self._run(lambda _: None, 0.0, calibrate=False).prepared:
            self._keep()

    def _keep(self) -> None:
        isolation().compiled.add(self._given)
        isolation().folders.keep_kernels(self._planner.kernel_owner)

    def _run(self, hand_over: HandOver, limit_s: float, calibrate: bool) -> ChildExit:
        errand = Errand(
            work=WORK,
            given=self._given,
            index=self._index,
            folder=errand_folder(),
            environment=child_environment(),
            memory_bytes=self._limits.memory_bytes,
            calibrate=calibrate,
        )
        left_s = self._stops_at - time.monotonic()
        handover = Handover(payload=hand_over, limit_s=min(limit_s + GRACE_S, left_s))
        owner = self._planner.kernel_owner
        heard = None if self._heard is None else self._listen
        self._offered.clear()
        try:
            ended = isolation().run(errand, min(PREPARE_S, left_s), handover, owner, heard)
        except KeyboardInterrupt:
            if not self._offered:
                raise
            self._interrupted = True
            return ChildExit(stopped=True, prepared=True, lost=True)
        if ended.stopped and time.monotonic() >= self._stops_at:
            raise SearchStopped
        return ended

    def _listen(self, message: bytes) -> None:
        """Pass on what a search says of its progress; reports come here too, and mean nothing here."""
        assert self._heard is not None
        try:
            progress = msgspec.msgpack.decode(message, type=Progress)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if progress.result is not None:
            self._offered[:] = [progress.result]
        if progress.message:
            self._heard(one_line(progress.message))

    def _with_offered(self, report: SearchReport) -> SearchReport:
        """Where the search was ended from outside, what it had offered until then."""
        if not self._offered or report.status not in ENDED_FROM_OUTSIDE:
            return report
        why = "interrupted" if self._interrupted else report.reason
        line = f"the search was ended from outside ({why}); this is the best plan that it had told of"
        last = self._offered[0]
        offered = replace(last, termination="limit", notices=(*last.notices, line))
        return SearchReport(status="found", result=offered)

    def _report(self, ended: ChildExit, limit_s: float) -> SearchReport:
        if ended.flaw:
            return _crash(ended.words)
        try:
            reports = [msgspec.msgpack.decode(payload, type=SearchReport) for payload in ended.messages]
        except (BrokenWire, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            return _crash(f"its process sent what is no report: {error}")
        late = len(reports) == 1 and reports[0].status == "timeout"
        if ended.left_behind and not late:  # what is killed at the deadline may take a while to end
            return _crash(f"{ended.left_behind}; a planner waits for all that it starts")
        if len(reports) == 1 and not ended.stopped:
            return reports[0]
        if len(reports) > 1:
            return _crash(f"its process sent {len(reports)} reports")
        if ended.stopped and not ended.prepared:
            return _crash(f"it was not prepared within {PREPARE_S:g} s: import, kernels, toy problems")
        if ended.stopped:
            return SearchReport(status="timeout", reason=f"no plan within {limit_s:.3g} s")
        if ended.code < 0 and -ended.code in DYING_OF_MEMORY and self._died_of_memory(ended):
            reason = f"its process was killed by {signal_name(-ended.code)} at its memory limit"
            return SearchReport(status="memory", reason=reason)
        before = " before it returned a plan" if ended.code >= 0 and not ended.lost else ""
        return _crash(f"{ended.words}{before}")

    def _died_of_memory(self, ended: ChildExit) -> bool:
        return bool(self._limits.memory_bytes) and ended.peak_bytes > self._limits.memory_bytes / 2


def _calibrations() -> dict[str, float]:
    """Of this process: what they import is imported before they are timed."""
    from pipebench.bench.searches import calibration

    _warm_calibrations()
    return calibration.calibrate()


@cache
def _warm_calibrations() -> None:
    from pipebench.bench.searches import calibration

    calibration.calibrate()


def after_compiling(
    run: Callable[[HandOver], ChildExit], payload: bytes, keep: Callable[[], None] | None
) -> tuple[ChildExit, float]:
    """Hand a payload to a child that finds its kernels on disk, and the seconds that were compiled before.

    run: a child that says what it compiled before it is handed anything. Where it compiled, it is handed nothing,
    what it left is kept, and another one is run: kernels that are kept are of children that have seen no problem.
    keep: None where all is kept already.
    """
    compiled_s: list[float] = []

    def hand_over(about: bytes) -> bytes | None:
        compiled_s.append(_compiled_seconds(about))
        return None if is_first() else payload

    def is_first() -> bool:
        return keep is not None and len(compiled_s) == 1 and compiled_s[0] > 0

    ended = run(hand_over)
    if keep is not None and ended.prepared and is_first():
        keep()
        ended = run(hand_over)
    return ended, sum(compiled_s)


def _compiled_seconds(about: bytes) -> float:
    """What a child says of its compiler; it decides only whether kernels are kept."""
    try:
        return msgspec.msgpack.decode(about, type=float)
    except msgspec.DecodeError:
        return 0.0


def _crash(reason: str) -> SearchReport:
    return SearchReport(status="crashed", reason=reason)
