"""One writer at a time: an advisory lock on a file of the store."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipebench.domain.errors import PipebenchError

PATIENCE_S = 60.0
STEP_S = 0.002


@contextmanager
def locked(file: Path, shared: bool = False) -> Iterator[None]:
    """Hold the lock for the length of the block. shared: readers together, the file must exist.

    Raises PipebenchError when another process keeps the lock for PATIENCE_S, OSError when the file cannot be
    opened or its file system has no locks.
    """
    opening = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
    handle = os.open(file, opening | os.O_CLOEXEC, 0o666)
    try:
        _wait(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, file)
        try:
            yield
        finally:
            # a child forked in between shares the open file: closing it here alone would not unlock it
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _wait(handle: int, kind: int, file: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise PipebenchError(
                    f"store {str(file.parent)!r}: another process has held its lock for {PATIENCE_S:g} s",
                    "look for a stopped pipebench, or give another folder",
                ) from None
            time.sleep(STEP_S)
        else:
            return
