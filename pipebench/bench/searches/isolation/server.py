"""The fork server: a small process, warm and with one thread, that forks a child for each search."""

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

from pipebench.algorithms.jit import start_compiler
from pipebench.bench.searches.calibration import calibrate
from pipebench.bench.searches.isolation.child import become_child
from pipebench.bench.searches.isolation.wire import BrokenWire, frame, receive_with_descriptors
from pipebench.hooks.manager import Host

KILL = b"K"
PR_SET_CHILD_SUBREAPER = 36


def serve(control: socket.socket) -> None:
    """Answer until the parent closes the connection. One search at a time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopt_orphans()
    wakeups = _wake_on_child_exit()
    host = _prepare()
    with contextlib.suppress(BrokenWire, ConnectionError):
        control.sendall(frame(b"ready"))
        while True:
            payload, descriptors = receive_with_descriptors(control, 2)
            child = os.fork()
            if child == 0:
                wakeups.close()
                control.close()
                become_child(host, payload, *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            _watch(control, wakeups, child)


def _prepare() -> Host:
    """Import what most searches need, and look at each plugin's descriptors; collect garbage for the last time."""
    import numba.core.event  # noqa: F401 - every search is watched for compilation

    host = Host()
    for slot in ("planners", "schedulers", "executors"):
        host.slot(slot)
    start_compiler()
    calibrate()
    gc.collect()
    gc.freeze()
    return host


def _watch(control: socket.socket, wakeups: socket.socket, child: int) -> None:
    """Until the child has ended, of itself or because the parent says so or is gone; then clean up and tell."""
    orphaned = False
    while True:
        ready, _, _ = select.select([wakeups] if orphaned else [wakeups, control], [], [])
        if control in ready:
            orphaned = control.recv(1) == b""
            _kill_all(child)
        if wakeups in ready:
            wakeups.recv(4096)
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
    _kill_all(child)
    _reap()
    if orphaned:
        raise BrokenWire("the parent is gone")
    scale = 1 if sys.platform == "darwin" else 1024
    told = {"code": os.waitstatus_to_exitcode(status), "peak_bytes": usage.ru_maxrss * scale}
    control.sendall(frame(json.dumps(told).encode()))


def _kill_all(child: int) -> None:
    """The child's process group, and every other process that descends from this one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    for process in _children():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _reap() -> None:
    """Wait for orphans until none is left; killing a parent hands its children over, so look again."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, _ = os.waitpid(-1, os.WNOHANG)
            if ended == 0:
                for process in _children():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(process, signal.SIGKILL)
                os.waitpid(-1, 0)


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
