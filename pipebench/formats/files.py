"""Reading and writing whole files: bounded, never half-written, errors in one line."""

import os
from pathlib import Path

from pipebench.domain.errors import PipebenchError

LARGEST_FILE_BYTES = 2**28


def read_file(path: str | Path) -> bytes:
    """The bytes of a file of at most LARGEST_FILE_BYTES.

    Raises PipebenchError: it is missing, a directory, not readable, or too large.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise PipebenchError(f"there is no file {str(path)!r}") from None
    except IsADirectoryError:
        raise PipebenchError(f"{str(path)!r} is a directory, not a file") from None
    except (OSError, ValueError) as error:
        raise PipebenchError(f"cannot read {str(path)!r}: {_reason(error)}") from None
    if len(data) > LARGEST_FILE_BYTES:
        raise PipebenchError(f"{str(path)!r} is larger than {LARGEST_FILE_BYTES // 2**20} MiB")
    return data


def write_file(path: str | Path, data: bytes) -> None:
    """Write a file at once: readers see the old content or the new one. Folders above it are made.

    Raises PipebenchError when it cannot be written; nothing is left behind then.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise PipebenchError(f"cannot write {str(path)!r}: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).lower()
