"""The files of a component's code and the hash of their contents. None of the code is run."""

import hashlib
import os
import zipimport
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from pipebench.domain.errors import PipebenchError

SUFFIXES = (".py", ".so", ".pyd", ".dylib", ".dll")
"""Python, and modules that were compiled from something else."""
MOST_FILES = 20_000


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file: its name inside the code it belongs to, its path, and the stamp that shows a change."""

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
    try:
        found = _walk(folder, prefix)
    except OSError as error:
        raise PipebenchError(f"cannot read {folder!r}: {(error.strerror or str(error)).lower()}") from None
    return sorted(found, key=lambda file: file.name)


def _walk(top: str, prefix: str) -> list[CodeFile]:
    found: list[CodeFile] = []
    seen: set[tuple[int, int]] = set()
    waiting = [(top, prefix)]
    while waiting:
        folder, prefix = waiting.pop()
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:  # a second link to it, or a loop
            continue
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(SUFFIXES):
                    if entry.is_file():
                        found.append(CodeFile(prefix + entry.name, entry.path, _stamp(entry.stat())))
                elif entry.name[0] != "." and entry.name != "__pycache__" and entry.is_dir():
                    waiting.append((entry.path, f"{prefix}{entry.name}/"))
        if len(found) > MOST_FILES:
            raise PipebenchError(f"{top!r} has more than {MOST_FILES} files of code")
    return found


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


@dataclass(frozen=True, slots=True)
class CodePackage:
    """The code under one import name: folders, single files, or one of them."""

    name: str
    folders: tuple[str, ...] = ()
    single: tuple[str, ...] = ()

    def files(self) -> list[CodeFile]:
        """Its files as they are now. Raises PipebenchError when there are none."""
        found = [file for i, folder in enumerate(self.folders) for file in files_below(folder, f"{self.name}{i}/")]
        found += [code_file(Path(path), Path(path).name) for path in self.single]
        if not found:
            raise _none(self.name)
        return found


def package_of(load: str) -> CodePackage:
    """The import package (or the single module) from which a component is loaded.

    It is the top package. Of a namespace package, which several distributions share and which holds no code
    itself, it is the part below it. For code in a zip it is the zip.
    Raises PipebenchError when no source can be found.
    """
    return _package(load.partition(":")[0])


@cache
def _package(module: str) -> CodePackage:
    name, rest = "", module.split(".")
    folders: tuple[str, ...] = ()
    while rest:
        name = f"{name}.{rest.pop(0)}" if name else rest.pop(0)
        spec = _spec(name, module)
        loader: object = spec.loader
        if isinstance(loader, zipimport.zipimporter):
            return CodePackage(name, single=(loader.archive,))
        if spec.submodule_search_locations is None:
            return CodePackage(name, single=(_file(spec, module),))
        folders = tuple(spec.submodule_search_locations)
        if spec.origin is not None:
            break
    return CodePackage(name, folders)


def _spec(name: str, module: str) -> ModuleSpec:
    # a package above this one is a namespace: to import it runs nothing
    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        raise _none(module)
    return spec


def _file(spec: ModuleSpec, module: str) -> str:
    if not spec.has_location or spec.origin is None:
        raise _none(module)
    return spec.origin


def _none(module: str) -> PipebenchError:
    return PipebenchError(
        f"the source of {module!r} cannot be found, so that a store cannot tell when it changes",
        "install it as files, or compare without a store",
    )
