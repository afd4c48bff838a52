"""Versions of the packages that a result may depend on."""

import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version

_NAMED_ALIKE = ("torch", "numpy", "numba", "networkx", "highspy")
_NAMES = {"pulp": "PuLP", **{name: name for name in _NAMED_ALIKE}}
"""Import name to distribution, to look up without a walk over all that is installed."""
PLUMBING = frozenset({"click", "jinja2", "joblib", "msgspec", "pluggy", "rich"})
"""What the host itself stands on: values, commands and tables, which change no result."""


def python_version() -> dict[str, str]:
    """The minor version of Python."""
    return {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def versions_of(modules: Iterable[str]) -> dict[str, str]:
    """Versions of the distributions that offer the modules: solvers, and what else does a planner's work.

    The standard library, pipebench and PLUMBING apart.
    """
    return {name: found for module in modules for name, found in _versions(module).items()}


@cache
def _versions(module: str) -> dict[str, str]:
    if module in sys.stdlib_module_names or module.startswith("pipebench") or module in PLUMBING:
        return {}
    if module in _NAMES:
        return {_NAMES[module]: _version(_NAMES[module])}
    return {name: _version(name) for name in _distributions().get(module, ())}


@cache
def _distributions() -> dict[str, list[str]]:
    return {module: sorted(set(names)) for module, names in packages_distributions().items()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
