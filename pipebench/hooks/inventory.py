"""What is installed: each plugin with version, components, state, import cost, and what it may not import."""

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint

from pipebench.hooks.descriptors import SLOTS
from pipebench.hooks.discovery import ImportedPlugin, Provider, first_line, load_plugins, provider_of
from pipebench.hooks.manager import Host

HEAVY = frozenset(
    {
        "numpy",
        "scipy",
        "pandas",
        "networkx",
        "pulp",
        "highspy",
        "ortools",
        "cvxpy",
        "gurobipy",
        "numba",
        "jax",
        "tensorflow",
        "torch",
        "sklearn",
        "matplotlib",
        "distributed",
        "joblib",
        "rich",
    }
)
"""Importing one costs from 60 ms to seconds, and every command would pay it, `--help` included."""


@dataclass(slots=True)
class PluginEntry:
    """One entry point.

    state: `loaded`, `partly` (some of its components are left out), `left out`.
    api: the version that its module states; None where it states none or does not load.
    slots: names of components by slot.
    import_cpu_s, modules: cost of importing it and calling its hooks, without what pipebench and the plugins
    before it have imported already.
    heavy: packages among these modules that belong behind `load`.
    troubles: warning lines.
    error: what its import raised.
    """

    provider: Provider
    module: str
    api: object = None
    state: str = "left out"
    slots: dict[str, list[str]] = field(default_factory=dict)
    import_cpu_s: float = 0.0
    modules: int = 0
    heavy: tuple[str, ...] = ()
    troubles: list[str] = field(default_factory=list)
    error: BaseException | None = None


def inventory(points: Iterable[EntryPoint]) -> list[PluginEntry]:
    """Every entry point, in the order in which the host loads them."""
    found: list[ImportedPlugin] = []
    listed = [_load_entry(point, found) for point in points]
    host = Host(found)
    for slot in SLOTS:
        for name, registered in host.slot(slot).items():
            entry = next(each for each in listed if each.provider == registered.provider)
            entry.slots.setdefault(slot, []).append(name)
    for entry in listed:
        entry.troubles += [line for line in host.warnings if f"plugin {entry.provider}" in line]
        if any(each.provider == entry.provider for each in found):
            entry.state = "partly" if entry.troubles else "loaded"
    return listed


def _load_entry(point: EntryPoint, found: list[ImportedPlugin]) -> PluginEntry:
    entry = PluginEntry(provider_of(point), point.value)
    before, began = set(sys.modules), time.process_time()
    try:
        module = point.load()
        entry.api = getattr(module, "PIPEBENCH_API", None)
        for slot in SLOTS:
            hook = getattr(module, f"pipebench_{slot}", None)
            list(hook() if callable(hook) else ())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may raise anything; loading it below gives the warning
        entry.error = error
    entry.import_cpu_s = time.process_time() - began
    new = set(sys.modules) - before
    entry.modules = len(new)
    entry.heavy = tuple(sorted({name.partition(".")[0] for name in new} & HEAVY))
    plugins, entry.troubles = load_plugins([point])
    found += plugins
    return entry


def cause(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {first_line(error)}"
