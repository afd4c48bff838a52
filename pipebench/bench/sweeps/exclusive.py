"""One timing trial at a time on a machine, whatever number of pipebench runs there are."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pipebench.bench.flock import Kind, acquired

PATIENCE_S = 30.0
POLL_S = 0.02


@contextlib.contextmanager
def machine_to_itself(patience_s: float = PATIENCE_S, waiting: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold the machine for one trial; False when another run still had it after that many seconds.

    waiting: called once when the machine is not free at once.
    """
    with _held("exclusive", patience_s, waiting) as held:
        yield held


@contextlib.contextmanager
def machine_shared() -> Iterator[None]:
    """Say that trials run side by side, as long as they do: timing trials of other runs wait, or are tagged."""
    with _held("shared", PATIENCE_S):
        yield


@contextlib.contextmanager
def _held(kind: Kind, patience_s: float, waiting: Callable[[], None] | None = None) -> Iterator[bool]:
    try:
        descriptor = os.open(_lock_file(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield True  # no folder for the lock: nobody else can hold it either
        return
    try:
        if (free := acquired(descriptor, kind, 0.0, POLL_S)) or patience_s <= 0:
            yield free
            return
        if waiting is not None:
            waiting()
        yield acquired(descriptor, kind, patience_s, POLL_S)
    finally:
        os.close(descriptor)


def _lock_file() -> Path:
    return Path(tempfile.gettempdir()) / f"pipebench-{os.getuid()}.lock"
