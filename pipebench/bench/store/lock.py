"""One writer at a time: an advisory lock on a file of the store."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipebench.bench.flock import acquired
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
        if not acquired(handle, "shared" if shared else "exclusive", PATIENCE_S, STEP_S):
            raise PipebenchError(
                f"store {str(file.parent)!r}: another process has held its lock for {PATIENCE_S:g} s",
                "look for a stopped pipebench, or give another folder",
            )
        try:
            yield
        finally:
            # a child forked in between shares the open file: closing it here alone would not unlock it
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
