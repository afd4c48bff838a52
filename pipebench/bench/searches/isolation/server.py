"""The fork server: a small process with one thread that forks a child for each errand and keeps its clock.

It imports no plugin. It starts light, and imports what searches need when its parent says so.
"""

import contextlib
import ctypes
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import get_args

import pipebench.bench.cage.work  # noqa: F401 - what children run that need no kernels
from pipebench.bench.searches.isolation.child import become_child, work_of
from pipebench.bench.searches.isolation.clock import ProcessClock
from pipebench.bench.searches.isolation.pages import collapse_pages
from pipebench.bench.searches.isolation.wire import (
    DESCRIPTORS,
    HAND_OVER,
    READ_CLOCK,
    BrokenWire,
    frame,
    receive_with_descriptors,
)
from pipebench.domain.problem import RegimeMode
from pipebench.system.parent import end_with_parent, outlive_parent

OUTLIVING_S = 0.5
"""How long processes that a child has started may still run after it; multiprocessing's end by themselves."""
PR_SET_CHILD_SUBREAPER = 36
SUITE = "pipebench."
"""How names of the suite's own modules begin; those of plugins do not."""


def serve(control: socket.socket) -> None:
    """Answer until the parent closes the connection. One errand at a time.

    A frame without open files asks to get warm, for searches; the answer says when that is so.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopt_orphans()
    wakeups = _wake_on_child_exit()
    cores = _cores()
    with contextlib.suppress(BrokenWire, ConnectionError):
        control.sendall(frame(b"ready"))
        while True:
            payload, descriptors = receive_with_descriptors(control, DESCRIPTORS)
            _keep_cores(cores)
            if not descriptors:
                end_with_parent(os.getppid())  # while nobody listens to the connection
                _get_warm()
                outlive_parent()
                control.sendall(frame(b"warm"))
                continue
            work = work_of(payload)
            _import_work(work.module)
            beside = _calibrate() if work.calibrate else {}  # before the fork, after which each page is copied
            commands = socket.socket(fileno=descriptors.pop())
            gate, opener = os.pipe()
            child = os.fork()
            if child == 0:
                for connection in (wakeups, control, commands):
                    connection.close()
                os.close(opener)
                os.read(gate, 1)  # nothing runs before the clock does
                os.close(gate)
                become_child(payload, *descriptors)
            clock = ProcessClock(child)
            for descriptor in (*descriptors, gate, opener):
                os.close(descriptor)
            with commands:
                _watch(control, commands, wakeups, child, clock, beside)


def _cores() -> set[int]:
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


def _keep_cores(cores: set[int]) -> None:
    """A child may have changed on which cores this process runs; the next child would inherit that."""
    if sys.platform == "linux" and os.sched_getaffinity(0) != cores:
        os.sched_setaffinity(0, cores)


def _get_warm() -> None:
    """Import what searches and other calls of hooks need; collect garbage for the last time."""
    import numba.core.event  # noqa: F401 - every search is watched for compilation
    import numpy.ma  # noqa: F401 - numpy imports it at the first `unique` of a process, which takes 10 ms

    from pipebench import algorithms, bounds, check, costs, simulation
    from pipebench.algorithms.jit import start_compiler
    from pipebench.bench.cage import results
    from pipebench.bench.searches import rehearsal, toys
    from pipebench.bench.searches.calibration import calibrate

    assert results
    for package in (algorithms, bounds, check, costs, simulation):
        for module in pkgutil.iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
    for mode in get_args(RegimeMode):
        toys.toys(mode)
    start_compiler()
    calibrate()
    rehearsal.rehearse()
    gc.collect()
    gc.freeze()
    collapse_pages()


def _import_work(module: str) -> None:
    """Import the suite's module that the errand is done by, so that no child has to."""
    if module.startswith(SUITE) and module not in sys.modules:
        import_module(module)
        gc.collect()
        gc.freeze()


def _calibrate() -> dict[str, float]:
    from pipebench.bench.searches.calibration import calibrate

    return calibrate()


def _watch(
    control: socket.socket,
    commands: socket.socket,
    wakeups: socket.socket,
    child: int,
    clock: ProcessClock,
    beside: dict[str, float],
) -> None:
    """Until the child has ended, of itself or because the parent says so or is gone; then clean up and tell.

    beside: what calibrations took before it was started.
    """
    killed = orphaned = False
    while True:
        ready, _, _ = select.select([wakeups] if orphaned else [wakeups, control, commands], [], [])
        if control in ready or commands in ready:
            command = b"" if control in ready else commands.recv(1)
            if command == HAND_OVER:
                told = {"calibration_cpu_s": beside, "prepare_cpu_s": clock.start()}
                commands.sendall(frame(json.dumps(told).encode()))
            elif command == READ_CLOCK:
                clock.read()
                commands.sendall(frame(b"{}"))
            else:
                orphaned, killed = command == b"", True
                _kill_all(child)
        if wakeups in ready:
            wakeups.recv(4096)
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
    clock.add(usage)
    outliving = 0 if killed else _outliving(clock)
    _kill_all(child)
    _reap(clock)
    if orphaned:
        raise BrokenWire("the parent is gone")
    scale = 1 if sys.platform == "darwin" else 1024
    ending = {
        "code": os.waitstatus_to_exitcode(status),
        "peak_bytes": usage.ru_maxrss * scale,
        "cpu_s": clock.stop(),
        "outliving": outliving,
    }
    commands.sendall(frame(json.dumps(ending).encode()))


def _outliving(clock: ProcessClock) -> int:
    """How many processes of a child that has ended still run after a moment."""
    until = time.monotonic() + OUTLIVING_S
    while True:
        _wait_for_ended(clock)
        running = len(_children())
        if not running or time.monotonic() > until:
            return running
        time.sleep(0.005)


def _kill_all(child: int) -> None:
    """The child's process group, and every other process that descends from this one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    for process in _children():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _wait_for_ended(clock: ProcessClock) -> bool:
    """Wait for orphans that have ended; whether others still run."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, _, usage = os.wait4(-1, os.WNOHANG)
            if ended == 0:
                return True
            clock.add(usage)
    return False


def _reap(clock: ProcessClock) -> None:
    """Wait for orphans until none is left; killing a parent hands its children over, so look again."""
    while _wait_for_ended(clock):
        for process in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            clock.add(os.wait4(-1, 0)[2])


def _children() -> list[int]:
    """The processes whose parent is this one; only Linux says."""
    listing = Path(f"/proc/self/task/{os.getpid()}/children")
    try:
        return [int(word) for word in listing.read_text().split()]
    except OSError:
        return []


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wake_on_child_exit() -> socket.socket:
    """A socket that becomes readable when a child ends."""
    reading, writing = socket.socketpair()
    for end in (reading, writing):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, _on_child_signal)
    signal.set_wakeup_fd(writing.detach(), warn_on_full_buffer=False)
    return reading


def _on_child_signal(number: int, frame: FrameType | None) -> None:
    """A handler must stand there for the wake-up to be written."""
    del number, frame


def main() -> None:
    """The server's process: argument 1 is the connection's descriptor."""
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
