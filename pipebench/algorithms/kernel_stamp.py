"""What a compiled kernel was made of: numba's own stamp covers the kernel's file, not what it calls in others."""

import hashlib
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

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
        open_names += _imported(name)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(name.encode() + hashlib.sha256(_source(name)).digest())
    return digest.hexdigest()


@cache
def _imported(name: str) -> frozenset[str]:
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
