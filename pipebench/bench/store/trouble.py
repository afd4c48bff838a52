"""What the file system refuses, as one line for the user."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipebench.domain.errors import PipebenchError

_SPACE = "free some space and run the same command again: finished trials are kept"
_PLACE = "give a folder that can be written"
_LOCKS = "give a folder on a file system with locks"
HINTS = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EROFS: _PLACE,
    errno.EACCES: _PLACE,
    errno.EPERM: _PLACE,
    errno.ENOTDIR: _PLACE,
    errno.ENOLCK: _LOCKS,
    errno.EOPNOTSUPP: _LOCKS,
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
