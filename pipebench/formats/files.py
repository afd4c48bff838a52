"""Reading and writing whole files: bounded, never half-written, errors in one line."""

import os
import stat
import sys
from pathlib import Path

from pipebench.documents.printable import printable
from pipebench.domain.errors import PipebenchError
from pipebench.system.files import read_file, reason_of
from pipebench.system.scratch import draft_beside, hold

__all__ = ["is_standard_output", "prepare_file", "read_file", "write_file"]
STDOUT, STDERR = 1, 2


def write_file(path: str | Path, data: bytes) -> None:
    """Write a file at once: readers see the old content or the new one. Folders above it are made.

    A link keeps pointing where it does, what it points at is replaced. What is no regular file (a pipe, a
    terminal, /dev/stdout even where it leads to a file) is written to as it is.

    Raises PipebenchError when it cannot be written, nothing is left behind then; BrokenPipeError when standard
    output has no reader.
    """
    stream = None
    try:
        target, status = _resolve_links(path)
        stream = None if status is None else _own_stream(status)
        if stream is not None:
            sys.stdout.flush()
            _write_all(stream, _for_reader(stream, data))
        elif status is None or stat.S_ISREG(status.st_mode):
            _replace(target, data, status)
        else:
            with open(path, "wb", buffering=0) as file:
                _write_all(file.fileno(), _for_reader(file.fileno(), data))
    except (OSError, ValueError) as error:
        if isinstance(error, BrokenPipeError) and stream is not None:
            raise
        raise PipebenchError(f"cannot write {str(path)!r}: {reason_of(error)}") from None


def prepare_file(path: str | Path) -> None:
    """Make the folders above a file and try whether it could be written. Raises PipebenchError when not."""
    try:
        target, status = _resolve_links(path)
        if status is None or stat.S_ISREG(status.st_mode):
            _probe(target)
        elif stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError("it is a directory")
        elif not os.access(path, os.W_OK):
            raise PermissionError("permission denied")
    except (OSError, ValueError) as error:
        raise PipebenchError(f"cannot write {str(path)!r}: {reason_of(error)}") from None


def is_standard_output(path: str | Path) -> bool:
    """Whether writing to the path writes to this process's standard output."""
    try:
        _, status = _resolve_links(path)
    except (OSError, ValueError):
        return False
    return status is not None and _own_stream(status) == STDOUT


def _resolve_links(path: str | Path) -> tuple[Path, os.stat_result | None]:
    """Where links lead, and what is there; None: nothing yet."""
    target = Path(os.path.realpath(path))
    try:
        return target, os.stat(path)
    except FileNotFoundError:
        return target, None


def _own_stream(status: os.stat_result) -> int | None:
    """The descriptor of standard output or error when it is the same file: opened again it would start anew."""
    for descriptor in (STDOUT, STDERR):
        try:
            if os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
        except OSError:
            continue
    return None


def _replace(target: Path, data: bytes, old: os.stat_result | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = draft_beside(target)
    try:
        with open(beside, "xb") as file:
            hold(file.fileno())
            file.write(data)
            file.flush()
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _probe(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = draft_beside(target)
    beside.touch(exist_ok=False)
    beside.unlink()


def _for_reader(descriptor: int, data: bytes) -> bytes:
    """A terminal obeys some characters: it gets none of them."""
    return printable(data.decode(errors="replace")).encode() if os.isatty(descriptor) else data


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
