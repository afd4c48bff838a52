"""The talk with one child: its reports and its output, what it is handed, its clock and its limits."""

import contextlib
import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pipebench.bench.searches.isolation.wire import (
    HAND_OVER,
    HEADER,
    KILL,
    MESSAGE,
    PROGRESS,
    READ_CLOCK,
    READY,
    BrokenWire,
    frame,
    next_frame,
    receive,
)
from pipebench.system.endings import exit_text

END_S = 10.0
"""For what the server or an ended child still has to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What a child is handed once it has said that it is prepared.

    payload: from what the child said about itself; None hands nothing over, and the child ends.
    limit_s: from then on until it is stopped.
    """

    payload: Callable[[bytes], bytes | None]
    limit_s: float


@dataclass(slots=True)
class ChildExit:
    """What a child left.

    messages: what it sent.
    code: its exit code, or minus the signal's number.
    peak_bytes: resident memory.
    prepared: whether it said that it was prepared. prepare_s, prepare_cpu_s: wall and CPU seconds until then.
    cpu_s: CPU seconds of it and of all that descended from it, since it was handed something, else in all.
    wall_s: from then on until its last message, or until it was ended at a limit.
    outliving: processes that still ran after it.
    calibration_cpu_s: of each calibration right before it was started.
    stopped: it reached a limit and was ended. lost: the server itself went down.
    flaw: what is wrong with what it sent after its messages, for which it was ended.
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
    flaw: str = ""
    output: str = ""

    @property
    def words(self) -> str:
        """How it ended: `its process ended with exit code 3`."""
        if self.lost:
            return "it brought down the process that runs plugins"
        return f"its process sent {self.flaw}" if self.flaw else f"its process {exit_text(self.code)}"

    @property
    def left_behind(self) -> str:
        """What it left running: `it left 2 processes running`; empty for nothing."""
        if not self.outliving:
            return ""
        return f"it left {'a process' if self.outliving == 1 else f'{self.outliving} processes'} running"


class Conversation:
    """One child's streams, from its start to its end. before: called before the child learns anything."""

    def __init__(
        self,
        commands: socket.socket,
        reports: "Reports",
        output: "Stream",
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
            if left_s <= 0 and not ended.stopped and not ended.flaw:
                self._command(KILL)
                ended.stopped, ended.wall_s = True, time.monotonic() - self._began_s
            streams = [stream for stream in (self._reports, self._output) if stream.open]
            writing = [self._hand] if self._hand is not None and self._left else []
            wait_s = END_S if ended.stopped or ended.flaw else max(0.0, left_s)
            waiting: list[socket.socket | Stream] = [self._commands, *streams]
            ready, writable, _ = select.select(waiting, writing, [], wait_s)
            if self._output in ready:
                self._output.read()
            if self._reports in ready and self._reports.read() and not ended.stopped:
                ended.wall_s = time.monotonic() - self._began_s
            if self._reports.flaw and not ended.flaw:
                self._command(KILL)
                ended.flaw = self._reports.flaw
            if self._reads_clock and any(each[:1] == MESSAGE for each in self._reports.frames):
                self._read_clock()
            elif self._commands in ready:
                return self._finish(json.loads(receive(self._commands)))
            if writable:
                self._write()
            over = ended.stopped or ended.flaw
            if self._handover is not None and not ended.prepared and not over and self._is_prepared():
                until_s = self._hand_over(self._handover)
            if self._told is not None:
                return self._finish(self._told)
            if (ended.stopped or ended.flaw) and not ready:
                raise BrokenWire("the server does not answer")

    def _read_clock(self) -> None:
        """The child has sent its message and waits until its clock was read."""
        self._reads_clock = False
        self._command(READ_CLOCK)
        told = json.loads(receive(self._commands))
        if "code" in told:
            self._told = told
        self.close_hand()

    def _command(self, command: bytes) -> None:
        """Tell the server. Where it has said how the child ended it listens no more; what it said is read next."""
        with contextlib.suppress(ConnectionError):
            self._commands.sendall(command)

    def close_hand(self) -> None:
        """What was handed over is complete."""
        if self._hand is not None:
            os.close(self._hand)
        self._hand, self._left = None, memoryview(b"")

    def _is_prepared(self) -> bool:
        return bool(self._reports.frames) and self._reports.frames[0][:1] == READY

    def _hand_over(self, handover: Handover) -> float:
        """Start the child's clock, then hand over; the time at which it must have ended."""
        ended = self._ended
        self._before()
        payload = handover.payload(self._reports.frames[0][1:])
        ended.prepared, ended.prepare_s = True, time.monotonic() - self._began_s
        if payload is None:
            self.close_hand()
            return time.monotonic() + END_S
        self._command(HAND_OVER)
        told = json.loads(receive(self._commands))
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
        if self._hand is None:  # the child has sent its message before it read all
            return
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
        ended.flaw = self._reports.flaw
        ended.messages = [each[1:] for each in self._reports.frames if each[:1] == MESSAGE]
        ended.output = bytes(self._output.kept).decode(errors="replace")
        return ended


class Stream:
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
        self._take(part)
        return self.open

    def _take(self, part: bytes) -> None:
        self.kept += part
        if len(self.kept) > self._keep:
            del self.kept[: -self._keep]

    def drain(self) -> None:
        """Take the rest of what has been written."""
        while self.open and self.read():
            pass


class Reports(Stream):
    """What a child reports, frame by frame. heard: told of each message and of all progress.

    frames: those that came, progress apart. flaw: what is wrong with what came, after which nothing is kept.
    """

    def __init__(self, descriptor: int, keep: int, heard: Callable[[bytes], None] | None = None) -> None:
        super().__init__(descriptor, keep)
        self._heard, self._held_bytes = heard, 0
        self.frames: list[bytes] = []
        self.flaw = ""

    def _take(self, part: bytes) -> None:
        if self.flaw:
            return
        self.kept += part
        position = 0
        try:
            while (each := next_frame(self.kept, position)) is not None:
                position += HEADER.size + len(each)
                self._add(each)
        except BrokenWire as error:
            self.flaw = str(error)
        del self.kept[:position]

    def _add(self, each: bytes) -> None:
        if self._heard is not None and each[:1] in (MESSAGE, PROGRESS):
            self._heard(each[1:])
        if each[:1] == PROGRESS:
            return
        self._held_bytes += sys.getsizeof(each)  # of short ones Python holds much more than came
        if self._held_bytes > self._keep:
            raise BrokenWire(f"more than {self._keep} bytes")
        self.frames.append(each)
