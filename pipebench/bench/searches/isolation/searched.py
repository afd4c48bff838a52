"""Run one search where it belongs, and say how it ended whatever its process did."""

import os
import signal
import time
from dataclasses import dataclass

import msgspec

from pipebench.bench.components import Ready
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import Ended, errand_folder, isolation
from pipebench.bench.searches.isolation.wire import Broken, frames
from pipebench.bench.searches.perform import perform
from pipebench.bench.searches.request import SearchReport, SearchRequest
from pipebench.bench.searches.search import GRACE_S
from pipebench.hooks.manager import Host

DYING_OF_MEMORY = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)


@dataclass(frozen=True, slots=True)
class Searched:
    """The report, the tail of what the planner printed, and the memory that its process held at its largest."""

    report: SearchReport
    output: str = ""
    peak_bytes: int | None = None


def searched(host: Host, planner: Ready, request: SearchRequest, memory_bytes: int) -> Searched:
    """The report of a search, in a child process unless the planner is the host's own.

    memory_bytes: what the search may take beyond what the fork server has; 0 for no limit.
    """
    if planner.here:
        reports: list[SearchReport] = []
        perform(host, planner, request, reports.append)
        return Searched(reports[-1])
    errand = Errand(
        request=request, folder=errand_folder(), environment=dict(os.environ), memory_bytes=memory_bytes
    )
    assert request.deadline_s is not None
    began = time.monotonic()
    ended = isolation().run(errand, request.deadline_s + GRACE_S)
    limit_s = request.deadline_s - began
    return Searched(_report(ended, limit_s, memory_bytes), ended.output, ended.peak_bytes or None)


def _report(ended: Ended, limit_s: float, memory_bytes: int) -> SearchReport:
    try:
        reports = [msgspec.msgpack.decode(payload, type=SearchReport) for payload in frames(ended.sent)]
    except (Broken, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return _crashed(f"its process sent what is no report: {error}")
    if reports and (reports[-1].final or (ended.stopped and reports[-1].status in ("found", "infeasible"))):
        return reports[-1]
    if ended.stopped:
        return SearchReport(status="timeout", reason=f"no plan within {limit_s:.3g} s")
    if ended.lost:
        return _crashed("it brought down the process that runs searches")
    if ended.code < 0:
        return _killed(-ended.code, ended.peak_bytes, memory_bytes)
    return _crashed(f"its process ended with exit code {ended.code} before it returned a plan")


def _killed(number: int, peak_bytes: int, memory_bytes: int) -> SearchReport:
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number in DYING_OF_MEMORY and memory_bytes and peak_bytes > memory_bytes / 2:
        return SearchReport(status="memory", reason=f"its process was killed by {name} at its memory limit")
    return _crashed(f"its process was killed by {name}")


def _crashed(reason: str) -> SearchReport:
    return SearchReport(status="crashed", reason=reason)
