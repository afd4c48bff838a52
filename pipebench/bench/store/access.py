"""Access to the files of a store: one writer at a time, and errors of the file system as one line."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipebench.bench.machine.flock import acquire
from pipebench.domain.errors import PipebenchError

_SPACE_HINT = "free some space and run the same command again: finished trials are kept"
_PLACE_HINT = "give a folder that can be written"
_LOCKS_HINT = "give a folder on a file system with locks"
HINTS = {
    errno.ENOSPC: _SPACE_HINT,
    errno.EDQUOT: _SPACE_HINT,
    errno.EROFS: _PLACE_HINT,
    errno.EACCES: _PLACE_HINT,
    errno.EPERM: _PLACE_HINT,
    errno.ENOTDIR: _PLACE_HINT,
    errno.ENOLCK: _LOCKS_HINT,
    errno.EOPNOTSUPP: _LOCKS_HINT,
}


@contextmanager
def storing(path: Path, what: str = "store") -> Iterator[None]:
    """Turn an OSError of the block into a PipebenchError that names the place, the cause and the remedy."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PipebenchError(f"{what} {str(path)!r}: {reason}", HINTS.get(error.errno or 0)) from None
    except PipebenchError as error:
        cause = error.__context__  # formats.files has put the OSError into words, the remedy is the store's
        if error.hint is None and isinstance(cause, OSError):
            raise PipebenchError(error.message, HINTS.get(cause.errno or 0)) from None
        raise


def open_own(file: Path, flags: int) -> int:
    """A descriptor of a regular file of a store, which may be made; opening never waits.

    What is written is in the folder: no link in a store that came from elsewhere leads to another file.
    Raises PipebenchError for a link, a pipe or a device in its place, OSError as `os.open`.
    """
    here = os.O_NOFOLLOW if flags & (os.O_WRONLY | os.O_RDWR) else 0
    try:
        handle = os.open(file, flags | here | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ELOOP):
            raise _not_regular(file) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_regular(file)
    return handle


def _not_regular(file: Path) -> PipebenchError:
    return PipebenchError(
        f"store {str(file.parent)!r}: its {file.name} is a pipe, a device, a folder or a link, not a file",
        "give another folder",
    )


PATIENCE_S = 60.0
STEP_S = 0.002


@contextmanager
def hold_lock(file: Path, shared: bool = False) -> Iterator[None]:
    """Hold the lock for the length of the block.

    shared: readers hold it together; the file must exist.
    Raises PipebenchError when another process keeps the lock for PATIENCE_S, OSError when the file cannot be
    opened or its file system has no locks.
    """
    opening = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
    handle = open_own(file, opening)
    try:
        if not acquire(handle, "shared" if shared else "exclusive", PATIENCE_S, STEP_S):
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
