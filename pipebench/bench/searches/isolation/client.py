"""The parent's side: start the fork server, hand it errands one at a time, keep the limits, and say how each
ended.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.confinement import passed_environment
from pipebench.bench.searches.isolation.folders import ChildFolders
from pipebench.bench.searches.isolation.wire import (
    CALIBRATE,
    HAND_OVER,
    HEADER,
    KILL,
    MESSAGE,
    READ_CLOCK,
    READY,
    BrokenWire,
    frame,
    frames,
    receive,
    send_with_descriptors,
)
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_MESSAGE_BYTES
from pipebench.hooks.discovery import SUITE
from pipebench.hooks.programs.program_call import THREAD_LIMITS, THREADS

START_S, END_S = 60.0, 10.0
CALIBRATION_S = 60.0
KEPT_OUTPUT_BYTES = 4096
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]);"
    "from pipebench.bench.searches.isolation.server import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What a child is handed once it has said that it is prepared.

    payload: from what the child said about itself; None hands nothing over, and the child ends.
    limit_s: from then on until it is stopped.
    calibrate: whether the server runs its calibrations right before.
    """

    payload: Callable[[bytes], bytes | None]
    limit_s: float
    calibrate: bool = False


@dataclass(slots=True)
class ChildExit:
    """What a child left.

    messages: what it sent.
    code: its exit code, or minus the signal's number.
    peak_bytes: resident memory.
    prepared: whether it said that it was prepared. prepare_s, prepare_cpu_s: wall and CPU seconds until then.
    cpu_s: CPU seconds of it and of all that descended from it, since it was handed something, else in all.
    wall_s: from then on until its last message.
    outliving: processes that still ran after it.
    calibration_cpu_s: of each calibration right before.
    stopped: it reached a limit and was ended. lost: the server itself went down.
    output: the tail of what was printed.
    """

    messages: list[bytes] = field(default_factory=list)
    code: int = 0
    peak_bytes: int = 0
    prepared: bool = False
    prepare_s: float = 0.0
    prepare_cpu_s: float = 0.0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    outliving: int = 0
    calibration_cpu_s: dict[str, float] = field(default_factory=dict)
    stopped: bool = False
    lost: bool = False
    output: str = ""


class Isolation:
    """One fork server, its connection, and the folders of its children. `run` takes turns between threads."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._started_with = os.environ.get("PYTHONPATH", "")
        self.folders = ChildFolders()
        self.compiled: set[bytes] = set()
        """For which searchers kernels were compiled and kept."""
        kernels = {"NUMBA_CACHE_DIR": str(self.folders.kernels), "PYTHONHASHSEED": "0"}
        self.folders.renew(SUITE)
        ours, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-c", START, str(theirs.fileno()), json.dumps(_import_path())],
                pass_fds=[theirs.fileno()],
                env=os.environ | kernels | dict.fromkeys(THREAD_LIMITS, str(THREADS)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if os.environ.get("PIPEBENCH_DEBUG") else subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control = ours
        self._greeted = self._gets_warm = self._warm = False
        self.index: dict[str, dict[str, str]] = {}
        """Slot and name of each component to its entry point, for errands that bring no index of their own."""

    def fits(self) -> bool:
        """Whether the server runs, and Python would start it in the same way again."""
        return self._server.poll() is None and self._started_with == os.environ.get("PYTHONPATH", "")

    def warm_up(self) -> None:
        """Let the server import what searches need, while this process goes on."""
        with self._turn:
            if not self._gets_warm:
                self._gets_warm = True
                self.folders.renew(SUITE)
                with contextlib.suppress(OSError):  # a server that is gone is noticed when it is needed
                    self._control.sendall(frame(b""))

    def run(
        self,
        errand: Errand,
        limit_s: float,
        handover: Handover | None = None,
        owner: str = "",
        heard: Callable[[bytes], None] | None = None,
    ) -> ChildExit:
        """Run one errand to its end, or kill it and all its processes at a limit.

        limit_s: until the child is prepared where something is handed over, else until its end.
        owner: the distribution whose compiled kernels the child reads.
        heard: told of each message as it comes.
        """
        if errand.warm:
            self.warm_up()
        with self._turn:
            try:
                self._greet()
                self.folders.renew(owner)
                kernels = str(self.folders.kernels)
                errand = replace(
                    errand,
                    path=tuple(_import_path()),
                    own=str(self.folders.own),
                    kernels=kernels,
                    environment=errand.environment | {"NUMBA_CACHE_DIR": kernels},
                    index=errand.index or self.index,
                )
                return self._run(errand, limit_s, handover, heard)
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
        self.folders.remove()

    def _greet(self) -> None:
        """Wait until the server has started, and is warm where it was asked to be."""
        self._control.settimeout(START_S)
        if not self._greeted:
            receive(self._control)
            self._greeted = True
        if self._gets_warm and not self._warm:
            receive(self._control)
            self._warm = True
            self.folders.keep_kernels(SUITE)
        self._control.settimeout(END_S)

    def _run(
        self,
        errand: Errand,
        limit_s: float,
        handover: Handover | None,
        heard: Callable[[bytes], None] | None,
    ) -> ChildExit:
        reports, their_reports = os.pipe()
        output, their_output = os.pipe()
        their_hand, hand = os.pipe()
        commands, their_commands = socket.socketpair()
        theirs = [their_reports, their_output, their_hand, their_commands.fileno()]
        conversation = _Conversation(
            commands,
            _Stream(reports, MOST_MESSAGE_BYTES, heard),
            _Stream(output, KEPT_OUTPUT_BYTES),
            hand,
            handover,
            self.folders.note,
        )
        try:
            try:
                send_with_descriptors(self._control, msgspec.msgpack.encode(errand), theirs)
            finally:
                for descriptor in theirs[:-1]:
                    os.close(descriptor)
                their_commands.close()
            return conversation.follow(limit_s)
        finally:
            commands.close()
            os.close(reports)
            os.close(output)
            conversation.close_hand()


class _Conversation:
    """One child's streams, from its start to its end. before: called before the child learns anything."""

    def __init__(
        self,
        commands: socket.socket,
        reports: "_Stream",
        output: "_Stream",
        hand: int,
        handover: Handover | None,
        before: Callable[[], None],
    ) -> None:
        commands.settimeout(END_S)
        os.set_blocking(hand, False)
        self._commands, self._reports, self._output = commands, reports, output
        self._hand: int | None = hand
        self._handover, self._before = handover, before
        self._left = memoryview(b"")
        self._ended = ChildExit()
        self._began_s = time.monotonic()
        self._reads_clock = False
        self._told: dict[str, float] | None = None

    def follow(self, limit_s: float) -> ChildExit:
        """Until the server says how the child ended."""
        ended, until_s = self._ended, self._began_s + limit_s
        if self._handover is None:
            self.close_hand()
        while True:
            left_s = until_s - time.monotonic()
            if left_s <= 0 and not ended.stopped:
                self._commands.sendall(KILL)
                ended.stopped = True
            streams = [stream for stream in (self._reports, self._output) if stream.open]
            writing = [self._hand] if self._hand is not None and self._left else []
            wait_s = END_S if ended.stopped else max(0.0, left_s)
            waiting: list[socket.socket | _Stream] = [self._commands, *streams]
            ready, writable, _ = select.select(waiting, writing, [], wait_s)
            if self._output in ready:
                self._output.read()
            if self._reports in ready and self._reports.read():
                ended.wall_s = time.monotonic() - self._began_s
            if self._reads_clock and len(frames(self._reports.kept)) > 1:
                self._read_clock()
            if self._commands in ready:
                return self._finish(json.loads(receive(self._commands)))
            if writable:
                self._write()
            if self._handover is not None and not ended.prepared and not ended.stopped and self._is_prepared():
                until_s = self._hand_over(self._handover)
            if self._told is not None:
                return self._finish(self._told)
            if ended.stopped and not ready:
                raise BrokenWire("the server does not answer")

    def _read_clock(self) -> None:
        """The child has sent its message and waits until its clock was read."""
        self._reads_clock = False
        self._commands.sendall(READ_CLOCK)
        told = json.loads(receive(self._commands))
        if "code" in told:
            self._told = told
        self.close_hand()

    def close_hand(self) -> None:
        """What was handed over is complete."""
        if self._hand is not None:
            os.close(self._hand)
        self._hand, self._left = None, memoryview(b"")

    def _is_prepared(self) -> bool:
        first = frames(self._reports.kept)[:1]
        return bool(first) and first[0][:1] == READY

    def _hand_over(self, handover: Handover) -> float:
        """Start the child's clock, then hand over; the time at which it must have ended."""
        ended = self._ended
        self._before()
        payload = handover.payload(frames(self._reports.kept)[0][1:])
        ended.prepared, ended.prepare_s = True, time.monotonic() - self._began_s
        if payload is None:
            self.close_hand()
            return time.monotonic() + END_S
        self._commands.settimeout(CALIBRATION_S)
        self._commands.sendall(CALIBRATE if handover.calibrate else HAND_OVER)
        told = json.loads(receive(self._commands))
        self._commands.settimeout(END_S)
        if "code" in told:  # it ended first
            self._told = told
            return self._began_s
        ended.calibration_cpu_s, ended.prepare_cpu_s = told["calibration_cpu_s"], told["prepare_cpu_s"]
        self._reads_clock = True
        self._began_s = time.monotonic()
        self._left = memoryview(frame(payload))
        self._write()
        return self._began_s + handover.limit_s

    def _write(self) -> None:
        assert self._hand is not None
        try:
            self._left = self._left[os.write(self._hand, self._left) :]
        except BlockingIOError:
            return
        except OSError:  # the child reads no more
            self._left = memoryview(b"")

    def _finish(self, told: dict[str, float]) -> ChildExit:
        for stream in (self._reports, self._output):
            stream.drain()
        ended = self._ended
        ended.code, ended.peak_bytes = int(told["code"]), int(told["peak_bytes"])
        ended.cpu_s, ended.outliving = told["cpu_s"], int(told["outliving"])
        ended.messages = [each[1:] for each in frames(self._reports.kept) if each[:1] == MESSAGE]
        ended.output = bytes(self._output.kept).decode(errors="replace")
        return ended


class _Stream:
    """What comes out of a pipe; of more than `keep` bytes the last. heard: told of each message in it."""

    def __init__(self, descriptor: int, keep: int, heard: Callable[[bytes], None] | None = None) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor, self._keep = descriptor, keep
        self._heard, self._told = heard, 0
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
        if self._heard is not None:
            self._tell(self._heard)
        return self.open

    def _tell(self, heard: Callable[[bytes], None]) -> None:
        for each in frames(self.kept[self._told :]):
            self._told += HEADER.size + len(each)
            if each[:1] == MESSAGE:
                heard(each[1:])

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
        """Started on first use, and again when it is gone."""
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


def _import_path() -> list[str]:
    """Of this process, with every entry absolute."""
    return [os.path.abspath(entry) for entry in sys.path]


def errand_folder() -> str:
    """The current folder, for relative paths of scripts and programs. Raises PipebenchError when it is gone."""
    try:
        return os.getcwd()
    except OSError as error:
        raise PipebenchError(f"the current folder: {error.strerror}") from None


def child_environment(declared: tuple[str, ...] = ()) -> dict[str, str]:
    """What a child sees of this process' variables, homes in its own folder."""
    return passed_environment(os.environ, str(isolation().folders.own), declared)


def exit_text(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """The name of a signal."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
