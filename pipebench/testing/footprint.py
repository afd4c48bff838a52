"""The child's side: what a call replaces, which files it writes, whom it reaches, and which children it leaves."""

import gc
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import msgspec

SUITE = "pipebench"
WATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (time, ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")),
    (time, ("time_ns", "monotonic_ns", "perf_counter_ns", "process_time_ns", "thread_time_ns")),
    (os, ("times", "fork", "wait", "wait3", "wait4", "waitpid", "_exit", "write")),
    (resource, ("getrusage",)),
    (msgspec.msgpack, ("encode", "decode")),
    (gc, ("collect", "enable", "disable")),
)
"""Functions outside the suite that measure a search or report it."""
KERNEL_FILES = (".pyc", ".nbi", ".nbc")
"""Compiled modules and kernels: Python and numba keep them, not the component."""
DEVICES = ("/dev/", "/proc/self/", f"/proc/{os.getpid()}/")

_usage = resource.getrusage


def spent_cpu_s() -> float:
    """CPU seconds of this process and of its children that were waited for; a component cannot replace it."""
    both = _usage(resource.RUSAGE_SELF), _usage(resource.RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in both)


class Originals:
    """The functions of clocks and suite as they were before a component was loaded."""

    def __init__(self) -> None:
        self._suite = dict(_suite_functions())
        self._watched = {(module, name): getattr(module, name) for module, name in _watched()}
        self._callbacks, self._of_children = list(gc.callbacks), signal.getsignal(signal.SIGCHLD)

    def replaced(self) -> tuple[str, ...]:
        """What is no longer as it was, by name."""
        found = [
            f"{module.__name__}.{name}"
            for (module, name), original in self._watched.items()
            if getattr(module, name, None) is not original
        ]
        found += [
            f"{module}.{name}"
            for (module, name), original in self._suite.items()
            if vars(sys.modules[module]).get(name) is not original
        ]
        found += ["gc.callbacks"] if gc.callbacks != self._callbacks else []
        found += ["sys.setprofile"] if sys.getprofile() is not None else []
        handler = signal.getsignal(signal.SIGCHLD)
        found += ["the handler of SIGCHLD"] if handler is not self._of_children else []
        return tuple(found)


def _watched() -> Iterator[tuple[Any, str]]:
    for module, names in WATCHED:
        yield from ((module, name) for name in names if hasattr(module, name))


def _suite_functions() -> Iterator[tuple[tuple[str, str], object]]:
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == SUITE and module is not None:
            for name, value in list(vars(module).items()):
                if isinstance(value, FunctionType | type):
                    yield (module_name, name), value


class Reach:
    """Files that a call opens for writing, and addresses that it connects to, while it is watched.

    Python's audit hook tells of both. It cannot be taken away again; it is silent outside `watched`.
    """

    def __init__(self, own: str) -> None:
        self._own = tuple(os.path.realpath(folder) + os.sep for folder in (own, tempfile.gettempdir()))
        self._opened: list[str] = []
        self._connected: list[str] = []
        self._watching = False
        sys.addaudithook(self._heard)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """What happens inside is the call's."""
        self._opened.clear()
        self._connected.clear()
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def written(self) -> tuple[str, ...]:
        """Files outside of its own folder and that for temporary files, and files left in these."""
        found = dict.fromkeys(map(os.path.realpath, self._opened))
        return tuple(name for name in found if self._foreign(name) or os.path.exists(name))

    def reached(self) -> tuple[str, ...]:
        """Addresses of other processes, except sockets in its own folders."""
        return tuple(dict.fromkeys(self._connected))

    def _foreign(self, name: str) -> bool:
        return not name.startswith(self._own)

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._watching:
            return
        if event == "open":
            path, _, flags = given
            if isinstance(path, str | bytes | os.PathLike) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                name = os.path.abspath(os.fsdecode(path))
                kernel = any(ending in name for ending in KERNEL_FILES)
                nameless = os.path.isdir(name)  # a temporary file in it, gone when it is closed
                if not kernel and not nameless and not name.startswith(DEVICES):
                    self._opened.append(name)
        elif event == "socket.connect":
            address = given[1]
            if isinstance(address, tuple):
                self._connected.append(f"{address[0]}:{address[1]}")
            elif not os.path.realpath(os.fsdecode(address).lstrip("\0")).startswith(self._own):
                self._connected.append(repr(address))


def unreaped(children: Callable[[], list[int]]) -> int:
    """How many children have ended and were never waited for; their CPU time is nobody's then."""
    count = 0
    for process in children():
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        count += state == "Z"
    return count
