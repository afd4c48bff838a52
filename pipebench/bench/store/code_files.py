"""The files that a piece of code consists of, and the hash of what is in them."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipebench.domain.errors import PipebenchError

SUFFIXES = (".py", ".so", ".pyd", ".dylib", ".dll")
"""Python, and modules that were compiled from something else."""
MOST_FILES, DEEPEST = 20_000, 40


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file: its name inside the code it belongs to, where it is, and what tells that it has changed."""

    name: str
    path: str
    stamp: tuple[int, int, int]


Stamped = tuple[str, tuple[int, int, int]]
_hashes: dict[Stamped, bytes] = {}


def code_file(path: Path, name: str) -> CodeFile:
    """One file. Raises PipebenchError when it is not there."""
    try:
        return CodeFile(name, str(path), _stamp(path.stat()))
    except OSError as error:
        raise PipebenchError(f"cannot read {str(path)!r}: {(error.strerror or str(error)).lower()}") from None


def files_below(folder: str, prefix: str = "") -> list[CodeFile]:
    """The code files below a folder, sorted by name; caches and hidden folders apart.

    Raises PipebenchError when there are more than MOST_FILES or the folder cannot be read.
    """
    found: list[CodeFile] = []
    try:
        _walk(folder, prefix, found, 0)
    except OSError as error:
        raise PipebenchError(f"cannot read {folder!r}: {(error.strerror or str(error)).lower()}") from None
    return sorted(found, key=lambda file: file.name)


def _walk(folder: str, prefix: str, found: list[CodeFile], depth: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIXES):
                if entry.is_file():
                    found.append(CodeFile(prefix + entry.name, entry.path, _stamp(entry.stat())))
            elif entry.name[0] != "." and entry.name != "__pycache__" and depth < DEEPEST and entry.is_dir():
                _walk(entry.path, f"{prefix}{entry.name}/", found, depth + 1)
            if len(found) > MOST_FILES:
                raise PipebenchError(f"{folder!r} has more than {MOST_FILES} files of code")


def hash_of(files: Iterable[CodeFile]) -> str:
    """SHA-256 over names and contents, in hex. A file is read again only when its stamp has changed."""
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{file.name}\0".encode(errors="surrogateescape") + _hash(file))
    return whole.hexdigest()


def content(path: str) -> bytes:
    """The bytes of a file. Raises PipebenchError."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise PipebenchError(f"cannot read {path!r}: {(error.strerror or str(error)).lower()}") from None


def _hash(file: CodeFile) -> bytes:
    key = file.path, file.stamp
    if key not in _hashes:
        _hashes[key] = hashlib.sha256(content(file.path)).digest()
    return _hashes[key]


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_size, status.st_ino
