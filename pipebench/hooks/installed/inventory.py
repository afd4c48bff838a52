"""What is installed: each plugin with version, components, state, what its import costs and does besides.

Plugins are imported here: this runs in a child process.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from tempfile import TemporaryFile

from msgspec.structs import replace

from pipebench.domain.value import Value
from pipebench.hooks.descriptors import SLOTS, Component, Executor, Profiler
from pipebench.hooks.discovery import (
    ImportedPlugin,
    Provider,
    Trouble,
    cause,
    installed_entry_points,
    load_plugins,
    provider_of,
)
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


LONG_WALL_S, BUSY = 1.0, 10.0
"""What a busy machine makes of an import: seconds, and times its CPU time."""
KEPT_LETTERS = 200
"""Of what a plugin prints while it is loaded."""


class PluginEntry(Value, frozen=True, kw_only=True):
    """One entry point.

    module: what it names.
    state: `loaded`, `partly` (some of its components are left out), `left out`.
    api: the version that its module states; None where it states none or does not load.
    slots: names of components by slot.
    import_cpu_s, import_wall_s, modules: cost of importing it and calling its hooks, without what pipebench and
    the plugins before it have imported already.
    heavy: packages among these modules that belong behind `load`.
    printed: what it prints meanwhile. moves: whether it changes the current folder.
    declares: what its components may do that others may not, one line each.
    troubles: what of it does not work.
    error: what its import raised, in one line. missing: the module that it did not find.
    """

    provider: Provider
    module: str
    api: int | str | None = None
    state: str = "left out"
    slots: dict[str, list[str]] = {}
    import_cpu_s: float = 0.0
    import_wall_s: float = 0.0
    modules: int = 0
    heavy: tuple[str, ...] = ()
    printed: str = ""
    moves: bool = False
    declares: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    error: str | None = None
    missing: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it is loaded for longer than a busy machine explains: it sleeps, or asks a slow server."""
        return self.import_wall_s >= LONG_WALL_S and self.import_wall_s > BUSY * self.import_cpu_s


def make_inventory(announce: Callable[[Provider], None], chosen: Collection[str]) -> list[PluginEntry]:
    """The chosen plugins (`str(provider)`), in the order in which the host loads them.

    announce: told of each plugin before its code runs.
    """
    found: list[ImportedPlugin] = []
    listed = []
    for point in installed_entry_points():
        if str(provider_of(point)) in chosen:
            announce(provider_of(point))
            listed.append(_load_entry(point, found))
    host = Host(found)
    slots: dict[str, dict[str, list[str]]] = {}
    declares: dict[str, list[str]] = {}
    for slot in SLOTS:
        for name, registered in host.slot(slot).items():
            key = str(registered.provider)
            slots.setdefault(key, {}).setdefault(slot, []).append(name)
            line = declaration(slot, registered.component)
            declares.setdefault(key, []).extend([line] if line else [])
    loaded = {str(each.provider) for each in found}
    return [_complete(entry, host.troubles, slots, declares, loaded) for entry in listed]


def _complete(
    entry: PluginEntry,
    troubles: list[Trouble],
    slots: dict[str, dict[str, list[str]]],
    declares: dict[str, list[str]],
    loaded: Collection[str],
) -> PluginEntry:
    key = str(entry.provider)
    own = (*entry.troubles, *(each for each in troubles if each.provider == entry.provider))
    state = ("partly" if own else "loaded") if key in loaded else entry.state
    return replace(
        entry, troubles=own, state=state, slots=slots.get(key, {}), declares=tuple(declares.get(key, ()))
    )


def declaration(slot: str, component: Component) -> str:
    """What the code of a component may do that other components may not; empty for nothing."""
    if not isinstance(component, Executor | Profiler):
        return ""
    parts = ["network"] if component.network else []
    parts += [f"variables {', '.join(component.variables)}"] if component.variables else []
    parts += [f"writes in {', '.join(component.writes)}"] if component.writes else []
    return f"{slot.removesuffix('s')} {component.name}: {'; '.join(parts)}" if parts else ""


def _load_entry(point: EntryPoint, found: list[ImportedPlugin]) -> PluginEntry:
    before, began, folder = set(sys.modules), time.process_time(), os.getcwd()
    began_wall = time.monotonic()
    entry = PluginEntry(provider=provider_of(point), module=point.value)
    with _printed() as printed:
        try:
            module = point.load()
            api = getattr(module, "PIPEBENCH_API", None)
            entry = replace(entry, api=api if isinstance(api, int | str | None) else repr(api))
            for slot in SLOTS:
                hook = getattr(module, f"pipebench_{slot}", None)
                list(hook() if callable(hook) else ())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything; loading it below gives the warning
            entry = replace(entry, error=cause(error), missing=missing_module(error))
        import_cpu_s, import_wall_s = time.process_time() - began, time.monotonic() - began_wall
        new = set(sys.modules) - before
        plugins, troubles = load_plugins([point])
    found += plugins
    moves = os.getcwd() != folder
    os.chdir(folder)
    return replace(
        entry,
        import_cpu_s=import_cpu_s,
        import_wall_s=import_wall_s,
        modules=len(new),
        heavy=tuple(sorted({name.partition(".")[0] for name in new} & HEAVY)),
        printed="".join(printed).strip()[:KEPT_LETTERS],
        moves=moves,
        troubles=tuple(troubles),
    )


@contextmanager
def _printed() -> Iterator[list[str]]:
    """What reaches both streams inside, as one text after the block."""
    seen: list[str] = []
    kept = [os.dup(number) for number in (1, 2)]
    with TemporaryFile() as output:
        for number in (1, 2):
            os.dup2(output.fileno(), number)
        try:
            yield seen
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            output.seek(0)
            seen.append(output.read(4 * KEPT_LETTERS).decode(errors="replace"))


def load_failures(host: Host, named: Collection[tuple[str, str]]) -> list[tuple[str, str, str, str | None]]:
    """The components (slot, name) whose code cannot be imported: slot, name, why, and the missing module."""
    failed = []
    for slot, name in named:
        try:
            host.load(host.find(slot, name).component)
        except BaseException as error:  # a plugin's import may raise anything, SystemExit included
            origin = error.__cause__ or error
            failed.append((slot, name, cause(origin), missing_module(origin)))
    return failed


def missing_module(error: BaseException) -> str | None:
    """The module that an import did not find."""
    return error.name if isinstance(error, ModuleNotFoundError) else None
