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
from typing import Any, Literal

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
class Trouble:
    """What of a plugin does not work, or soon will not, and what mends it. As text it is one warning line.

    kind: what is left out: the `plugin` as a whole, a `hook` (all that it offers in one slot) or a `component`;
    one whose name another plugin has is a `clash`. Or what is only told: that a
    function is `no hook`, or has the name of one and `no mark`, or that a version is `aging`.
    slot: of a hook or component. component: its name; None where it has none.
    remedy: in place of the usual one.
    """

    provider: Provider
    kind: Literal["plugin", "hook", "component", "clash", "no hook", "no mark", "aging"]
    why: str
    slot: str = ""
    component: str | None = None
    remedy: str = ""

    @property
    def summary(self) -> str:
        """The cause, without the plugin and the remedy; with what is left out where that is a part."""
        return f"{self._part}{self._loss}: {self.why}" if self._part else self.why

    @property
    def _part(self) -> str:
        if self.kind == "hook":
            return f"the {self.slot}"
        if self.kind not in ("component", "clash"):
            return ""
        if self.component is None:
            return f"one of the {self.slot}"
        return f"{self.slot.removesuffix('s')} {self.component!r}"

    @property
    def _loss(self) -> str:
        if self.kind in ("no hook", "no mark", "aging"):
            return ""
        return " are left out" if self.kind == "hook" else " is left out"

    @property
    def advice(self) -> str:
        """The cause and the remedy."""
        remove = f"update it, or remove it: pip uninstall {self.provider.distribution}"
        return f"{self.why} ({self.remedy or (REPAIR if self.provider.ships else remove)})"

    def __str__(self) -> str:
        whose = f"{self._part} of " if self._part else ""
        return f"{whose}plugin {self.provider}{self._loss}: {self.advice}"


def clash(slot: str, name: str, provider: Provider, first: Provider) -> Trouble:
    """The trouble of a component whose name another plugin has."""
    return Trouble(provider, "clash", f"the name is already provided by {first}", slot, name)


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


def load_plugins(points: Iterable[EntryPoint]) -> tuple[list[ImportedPlugin], list[Trouble]]:
    """The plugins that load, and the trouble with each that does not."""
    found: list[ImportedPlugin] = []
    troubles: list[Trouble] = []
    for point in points:
        provider = provider_of(point)
        try:
            module = point.load()
            version = getattr(module, "PIPEBENCH_API", None)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            troubles.append(Trouble(provider, "plugin", cause(error)))
            continue
        refused = refusal(version)
        if refused is not None:
            remedy = UPGRADE if is_newer(version) else ""
            troubles.append(Trouble(provider, "plugin", refused, remedy=remedy))
            continue
        aging = notice(int(version or 0))
        if aging is not None:
            upgrade = f"pip install --upgrade {provider.distribution}"
            troubles.append(Trouble(provider, "aging", aging, remedy=upgrade))
        found.append(ImportedPlugin(provider, module, point.value))
    return found, troubles


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


def first_line(error: BaseException) -> str:
    """The first line of an error's text, shortened."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else ""


def cause(error: BaseException) -> str:
    """An error in one line, with the place in the code of a plugin at which it was raised."""
    return f"{type(error).__name__}: {first_line(error)}".removesuffix(": ") + place(error)


def place(error: BaseException) -> str:
    """The innermost frame that is neither pipebench's nor Python's, as " (mine.py, line 9)"; empty for none."""
    if isinstance(error, SyntaxError):  # its text names the line
        return ""
    found, step = "", error.__traceback__
    while step is not None:
        path = step.tb_frame.f_code.co_filename
        if not (path.startswith("<") or is_suites(path) or is_pythons(path)):
            found = f" ({os.path.basename(path)[:80]}, line {step.tb_lineno})"
        step = step.tb_next
    return found


def is_suites(path: str) -> bool:
    """Whether a file of code is pipebench's."""
    return path.startswith(_SUITE_FOLDER)


def is_pythons(path: str) -> bool:
    """Whether a file of code is of Python's library. Packages are installed into a folder of that."""
    return path.startswith(_LIBRARY_FOLDER) and "-packages" not in path.removeprefix(_LIBRARY_FOLDER)
