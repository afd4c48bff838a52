"""Compiled kernels: numba with an on-disk cache that knows what a kernel was made of."""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numba
from numpy.typing import NDArray

from pipebench.system.kernel_folder import VARIABLE, kernel_folder

OURS = "pipebench"
_IMPORTED = re.compile(rb"^(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)


@cache
def stamp(module: str) -> str:
    """A digest of the sources that kernels of a module are compiled from.

    These are the module's file and those of all modules of its own package and of pipebench that it imports, at
    any depth: kernels of theirs are compiled into its kernels, and their constants, too.
    """
    packages = {OURS, module.partition(".")[0]}
    found: set[str] = set()
    open_names = [module]
    while open_names:
        name = open_names.pop()
        if name in found or name not in sys.modules or name.partition(".")[0] not in packages:
            continue
        found.add(name)
        open_names += _imported_modules(name)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(name.encode() + hashlib.sha256(_source(name)).digest())
    return digest.hexdigest()


@cache
def _imported_modules(name: str) -> frozenset[str]:
    """Modules that a module names in its import lines, or holds something of."""
    named = {match.decode() for match in _IMPORTED.findall(_source(name))}
    for value in vars(sys.modules[name]).values():
        named.add(value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", "")))
    return frozenset(named)


@cache
def _source(name: str) -> bytes:
    file = getattr(sys.modules[name], "__file__", None)
    try:
        return Path(file).read_bytes() if file else b""
    except OSError:
        return b""


def _choose_folder() -> None:
    """Tell numba where kernels are kept. A process that was told by its environment keeps to that."""
    if VARIABLE not in os.environ and (folder := kernel_folder()) is not None:
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]


_choose_folder()
F = TypeVar("F", bound=Callable[..., object])
COMPILES = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether kernels are compiled; with NUMBA_DISABLE_JIT=1 Python runs them."""


def kernel(function: F) -> F:
    """Compile on first call; cached on disk in `kernel_folder`, else beside the source, else not at all.

    What is cached counts no longer once a source that the kernel is compiled from has changed, see `stamp`.
    """
    if not COMPILES:
        return function
    try:
        compiled: Any = numba.njit(cache=True)(function)
        index = compiled._cache._cache_file
        # numba looks at the version before it reads the rest, which may name classes that are gone.
        index._version = f"{index._version} {stamp(function.__module__)}"
    except (RuntimeError, AttributeError):
        compiled = numba.njit(function)
    return cast(F, compiled)


def in_python(function: F) -> F:
    """The function that a kernel is compiled from, for code that Python runs."""
    return cast(F, getattr(function, "py_func", function))


def start_compiler() -> None:
    """Let numba look up all that it can compile, which it otherwise does at a process's first kernel: 0.2 s."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


@kernel
def assign(target: NDArray[Any], source: NDArray[Any]) -> None:
    """`target[: len(source)] = source` for C-contiguous arrays that differ in length only."""
    to, of = target.reshape(-1), source.reshape(-1)
    for at in range(of.size):
        to[at] = of[at]
