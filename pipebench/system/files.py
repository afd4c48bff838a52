"""Reading files that somebody names: regular ones, bounded, errors in one line. Streams that go nowhere."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LARGEST_FILE_BYTES, MIB

OWN_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Paths of what this process was started with: a pipe there is read to its end."""
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_regular(path: str | Path) -> BufferedReader:
    """A regular file, open for reading. What it is is asked after it was opened, and opening never waits.

    Raises PipebenchError for a pipe, a device or a socket, IsADirectoryError and other OSErrors as `open`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{str(path)!r} is a directory, not a file")
        if not stat.S_ISREG(mode) and not (stat.S_ISFIFO(mode) and str(path).startswith(OWN_STREAMS)):
            kind = next((name for holds, name in _KINDS if holds(mode)), "special")
            raise PipebenchError(f"{str(path)!r} is {kind}, not a file", "copy what it gives into a file first")
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: str | Path) -> bytes:
    """The bytes of a file of at most LARGEST_FILE_BYTES.

    Raises PipebenchError: it is missing, a directory, a pipe, a device, not readable, or too large.
    """
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise PipebenchError(f"there is no file {str(path)!r}") from None
    except IsADirectoryError:
        raise PipebenchError(f"{str(path)!r} is a directory, not a file") from None
    except PipebenchError:
        raise
    except (OSError, ValueError) as error:
        raise PipebenchError(f"cannot read {str(path)!r}: {reason_of(error)}") from None
    if len(data) > LARGEST_FILE_BYTES:
        raise PipebenchError(f"{str(path)!r} is larger than {LARGEST_FILE_BYTES // MIB} MiB")
    return data


def reason_of(error: OSError | ValueError) -> str:
    """Why a file cannot be used, in the words of the system."""
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).lower()


def discard(descriptor: int) -> None:
    """From now on what is written to a standard stream goes nowhere, what is still buffered too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


@contextmanager
def printing_nothing(*streams: int) -> Iterator[None]:
    """What is written inside to standard output (1) or errors (2) goes nowhere.

    Compiled code has to empty its buffer itself.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(stream) for stream in streams]
    for stream in streams:
        discard(stream)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, was in zip(streams, kept, strict=True):
            os.dup2(was, stream)
            os.close(was)
