"""Find plugins.

Entry points are loaded one at a time, so that a broken plugin costs a warning and not the command.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from itertools import takewhile
from types import ModuleType
from typing import Any

import msgspec

import pipebench
from pipebench.hooks.api import is_newer, notice, refusal

GROUP = "pipebench"
SUITE = "pipebench"
"""The distribution that the plugins that ship come with."""
CONSTANTS = "PIPEBENCH_"
REPAIR = "it is part of pipebench: pip install --force-reinstall pipebench, and report it if that does not help"
"""What mends a plugin that ships, in the words of a warning."""
_SUITE_FOLDER = os.path.join(os.path.dirname(pipebench.__file__), "")
_LIBRARY_FOLDER = os.path.join(os.path.dirname(os.__file__), "")
UPGRADE = f"pip install --upgrade {SUITE}"
"""What mends a plugin that was written for a newer pipebench."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The distribution that a plugin came from."""

    distribution: str
    version: str
    entry_point: str

    @property
    def ships(self) -> bool:
        """Whether the plugin is part of pipebench itself: one distribution, which is never to be removed."""
        return self.distribution == SUITE

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({self.entry_point})"


@dataclass(frozen=True, slots=True)
class ImportedPlugin:
    """A plugin module that could be imported. entry: what its entry point names, to import it elsewhere."""

    provider: Provider
    module: ModuleType
    entry: str = ""


def installed_entry_points() -> list[EntryPoint]:
    """The entry points of the group, the project's own first, then by distribution and name."""
    return sorted(entry_points(group=GROUP), key=lambda point: _rank(provider_of(point)))


def _rank(provider: Provider) -> tuple[bool, str, str]:
    return not provider.ships, provider.distribution, provider.entry_point


def provider_of(point: EntryPoint) -> Provider:
    """The distribution that offers an entry point."""
    distribution = point.dist
    if distribution is None:
        return Provider("unknown", "", point.name)
    return Provider(*_name_and_version(distribution), point.name)


@lru_cache
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Name and version from the head of the metadata; the library would parse all of it, README included, every
    time.
    """
    # a broken installation may have no metadata at all
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    lines = takewhile(bool, map(str.rstrip, text.splitlines()))
    head = {key.lower(): value for key, _, value in (line.partition(": ") for line in lines)}
    return head.get("name") or "unknown", head.get("version", "")


def load_plugins(points: Iterable[EntryPoint]) -> tuple[list[ImportedPlugin], list[str]]:
    """The plugins that load, and a warning line with cause and remedy for each that does not."""
    found: list[ImportedPlugin] = []
    warnings: list[str] = []
    for point in points:
        provider = provider_of(point)
        try:
            module = point.load()
            version = getattr(module, "PIPEBENCH_API", None)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            warnings.append(exclusion_warning(provider, cause(error)))
            continue
        refused = refusal(version)
        if refused is not None:
            warnings.append(exclusion_warning(provider, refused, UPGRADE if is_newer(version) else ""))
            continue
        aging = notice(int(version or 0))
        if aging is not None:
            warnings.append(f"plugin {provider}: {aging} (pip install --upgrade {provider.distribution})")
        found.append(ImportedPlugin(provider, module, point.value))
    return found, warnings


def module_constants(module: ModuleType) -> dict[str, Any]:
    """What a plugin's module binds to names that start with PIPEBENCH_, as plain data; else the type of it."""
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if isinstance(name, str) and name.startswith(CONSTANTS):
            try:
                found[name] = msgspec.json.decode(msgspec.json.encode(value))
            except Exception:  # a module may bind anything to the name
                found[name] = type(value).__name__
    return found


def exclusion_warning(provider: Provider, why: str, remedy: str = "") -> str:
    """The warning line for a plugin that is left out as a whole. remedy: in place of the usual one."""
    return f"plugin {provider} is left out: {why} ({remedy or _remedy(provider)})"


def hook_warning(slot: str, provider: Provider, why: str) -> str:
    """The warning line for a hook that fails: all that the plugin offers in one slot."""
    return f"the {slot} of plugin {provider} are left out: {why} ({_remedy(provider)})"


def component_warning(slot: str, name: object, provider: Provider, why: str) -> str:
    """The warning line for one component of a plugin whose others can be used. name: None where it has none."""
    which = f"one of the {slot}" if name is None else f"{slot.removesuffix('s')} {name!r}"
    return f"{which} of plugin {provider} is left out: {why} ({_remedy(provider)})"


def clash_warning(slot: str, name: str, provider: Provider, first: Provider) -> str:
    """The warning line for a component whose name another plugin has."""
    return component_warning(slot, name, provider, f"the name is already provided by {first}")


def _remedy(provider: Provider) -> str:
    return REPAIR if provider.ships else f"update it, or remove it: pip uninstall {provider.distribution}"


def first_line(error: BaseException) -> str:
    """The first line of an error's text, shortened."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else ""


def cause(error: BaseException) -> str:
    """An error in one line, with the place in the code of a plugin at which it was raised."""
    return f"{type(error).__name__}: {first_line(error)}".removesuffix(": ") + _place(error)


def _place(error: BaseException) -> str:
    """The innermost frame that is neither pipebench's nor Python's: the file's name, without its folder."""
    if isinstance(error, SyntaxError):  # its text names the line
        return ""
    place, step = "", error.__traceback__
    while step is not None:
        path = step.tb_frame.f_code.co_filename
        if not (path.startswith("<") or is_suites(path) or is_pythons(path)):
            place = f" ({os.path.basename(path)[:80]}, line {step.tb_lineno})"
        step = step.tb_next
    return place


def is_suites(path: str) -> bool:
    """Whether a file of code is pipebench's."""
    return path.startswith(_SUITE_FOLDER)


def is_pythons(path: str) -> bool:
    """Whether a file of code is of Python's library. Packages are installed into a folder of that."""
    return path.startswith(_LIBRARY_FOLDER) and "-packages" not in path.removeprefix(_LIBRARY_FOLDER)
