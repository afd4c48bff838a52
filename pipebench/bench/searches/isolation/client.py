"""The parent's side: start the fork server, hand it searches one at a time, keep the clock, and say
how each ended.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import msgspec

from pipebench.bench.components import Ready
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.wire import BrokenWire, frames, receive, send_with_descriptors
from pipebench.bench.searches.perform import perform
from pipebench.bench.searches.request import SearchReport, SearchRequest
from pipebench.bench.searches.search import GRACE_S
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.manager import Host
from pipebench.hooks.program_call import THREAD_LIMITS, THREADS

START_S, END_S = 60.0, 10.0
KEPT_OUTPUT_BYTES = 4096
MAX_REPORT_BYTES = 2**30
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]);"
    "from pipebench.bench.searches.isolation.server import main; main()"
)


@dataclass(slots=True)
class ChildExit:
    """What a child left. sent: the bytes of its reports. code: exit code, or minus the signal's number.

    stopped: the parent ended it at the time limit. lost: the server itself went down. output: the tail of
    what was printed.
    """

    sent: bytes = b""
    code: int = 0
    peak_bytes: int = 0
    stopped: bool = False
    lost: bool = False
    output: str = ""


class Isolation:
    """One fork server and its connection. Not for several threads at once: `run` takes turns."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._surroundings = _surroundings()
        ours, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-c", START, str(theirs.fileno()), json.dumps(self._surroundings[0])],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONHASHSEED": "0"} | dict.fromkeys(THREAD_LIMITS, str(THREADS)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if os.environ.get("PIPEBENCH_DEBUG") else subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control = ours
        self._greeted = False

    def fits(self) -> bool:
        """Whether the server runs and has this process' import path."""
        return self._server.poll() is None and self._surroundings == _surroundings()

    def run(self, errand: Errand, deadline_s: float) -> ChildExit:
        """Run one search to its end, or kill it and all its processes at the deadline (time.monotonic())."""
        with self._turn:
            try:
                self._greet()
                return self._run(errand, deadline_s)
            except (BrokenWire, ConnectionError, TimeoutError):
                self.close()
                return ChildExit(lost=True)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the server and what it runs."""
        self._control.close()
        try:
            self._server.wait(END_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def _greet(self) -> None:
        if self._greeted:
            return
        self._control.settimeout(START_S)
        receive(self._control)
        self._control.settimeout(END_S)
        self._greeted = True

    def _run(self, errand: Errand, deadline_s: float) -> ChildExit:
        reports, their_reports = os.pipe()
        output, their_output = os.pipe()
        try:
            send_with_descriptors(self._control, msgspec.msgpack.encode(errand), [their_reports, their_output])
            os.close(their_reports)
            os.close(their_output)
            return self._follow(_Stream(reports, MAX_REPORT_BYTES), _Stream(output, KEPT_OUTPUT_BYTES), deadline_s)
        finally:
            os.close(reports)
            os.close(output)

    def _follow(self, reports: "_Stream", output: "_Stream", deadline_s: float) -> ChildExit:
        ended = ChildExit()
        while True:
            left = deadline_s - time.monotonic()
            if left <= 0 and not ended.stopped:
                self._control.sendall(b"K")
                ended.stopped = True
            open_streams = [stream for stream in (reports, output) if stream.open]
            wait_s = END_S if ended.stopped else left
            waiting: list[socket.socket | _Stream] = [self._control, *open_streams]
            ready, _, _ = select.select(waiting, [], [], wait_s)
            for stream in open_streams:
                if stream in ready:
                    stream.read()
            if self._control in ready:
                told = json.loads(receive(self._control))
                break
            if ended.stopped and not ready:
                raise BrokenWire("the server does not answer")
        for stream in (reports, output):
            stream.drain()
        ended.code, ended.peak_bytes = told["code"], told["peak_bytes"]
        ended.sent = bytes(reports.kept)
        ended.output = bytes(output.kept).decode(errors="replace")
        return ended


class _Stream:
    """What comes out of a pipe; of more than `keep` bytes the last."""

    def __init__(self, descriptor: int, keep: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor, self._keep = descriptor, keep
        self.kept = bytearray()
        self.open = True

    def fileno(self) -> int:
        return self._descriptor

    def read(self) -> bool:
        """Take what is there; whether there was something."""
        try:
            part = os.read(self._descriptor, 2**20)
        except BlockingIOError:
            return False
        self.open = bool(part)
        self.kept += part
        if len(self.kept) > self._keep:
            del self.kept[: -self._keep]
        return self.open

    def drain(self) -> None:
        """Take the rest of what has been written."""
        while self.open and self.read():
            pass


class _Own:
    """This process' fork server."""

    def __init__(self) -> None:
        self._choosing = threading.Lock()
        self._current: Isolation | None = None
        self._owner = 0

    def get(self) -> Isolation:
        """Started on first use and whenever the import path has changed."""
        with self._choosing:
            if self._owner != os.getpid():
                self._current = None  # it belongs to the process that this one was forked from
            if self._current is not None and not self._current.fits():
                self._current.close()
                self._current = None
            if self._current is None:
                self._current, self._owner = Isolation(), os.getpid()
            return self._current

    def end(self) -> None:
        """At the end of this process."""
        if self._current is not None and self._owner == os.getpid():
            self._current.close()


_own = _Own()
isolation = _own.get
atexit.register(_own.end)


def _surroundings() -> tuple[list[str], str]:
    """The import path with every entry absolute, and the folder that relative ones were taken from."""
    return [os.path.abspath(entry) for entry in sys.path], os.environ.get("PYTHONPATH", "")


def errand_folder() -> str:
    """The current folder, for relative paths of scripts and programs. Raises PipebenchError when it is gone."""
    try:
        return os.getcwd()
    except OSError as error:
        raise PipebenchError(f"the current folder: {error.strerror}") from None


DYING_OF_MEMORY = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)


@dataclass(frozen=True, slots=True)
class IsolatedSearch:
    """The report, the tail of what the planner printed, and the memory that its process held at its largest."""

    report: SearchReport
    output: str = ""
    peak_bytes: int | None = None


def search_in_isolation(host: Host, planner: Ready, request: SearchRequest, memory_bytes: int) -> IsolatedSearch:
    """The report of a search, in a child process unless the planner is the host's own.

    memory_bytes: what the search may take beyond what the fork server has; 0 for no limit.
    """
    if planner.here:
        reports: list[SearchReport] = []
        perform(host, planner, request, reports.append)
        return IsolatedSearch(reports[-1])
    errand = Errand(
        request=request, folder=errand_folder(), environment=dict(os.environ), memory_bytes=memory_bytes
    )
    assert request.deadline_s is not None
    began = time.monotonic()
    ended = isolation().run(errand, request.deadline_s + GRACE_S)
    limit_s = request.deadline_s - began
    return IsolatedSearch(_report(ended, limit_s, memory_bytes), ended.output, ended.peak_bytes or None)


def _report(ended: ChildExit, limit_s: float, memory_bytes: int) -> SearchReport:
    try:
        reports = [msgspec.msgpack.decode(payload, type=SearchReport) for payload in frames(ended.sent)]
    except (BrokenWire, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return _crash_report(f"its process sent what is no report: {error}")
    if reports and (reports[-1].final or (ended.stopped and reports[-1].status in ("found", "infeasible"))):
        return reports[-1]
    if ended.stopped:
        return SearchReport(status="timeout", reason=f"no plan within {limit_s:.3g} s")
    if ended.lost:
        return _crash_report("it brought down the process that runs searches")
    if ended.code < 0:
        return _signal_report(-ended.code, ended.peak_bytes, memory_bytes)
    return _crash_report(f"its process ended with exit code {ended.code} before it returned a plan")


def _signal_report(number: int, peak_bytes: int, memory_bytes: int) -> SearchReport:
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number in DYING_OF_MEMORY and memory_bytes and peak_bytes > memory_bytes / 2:
        return SearchReport(status="memory", reason=f"its process was killed by {name} at its memory limit")
    return _crash_report(f"its process was killed by {name}")


def _crash_report(reason: str) -> SearchReport:
    return SearchReport(status="crashed", reason=reason)
