"""Plugins made in a test: packages on the path, offered to a host without being loaded."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Component, Executor, Planner, Scheduler
from pipebench.hooks.discovery import ImportedPlugin, Provider
from pipebench.hooks.manager import Host


class MadeOptions(Value, frozen=True, kw_only=True):
    depth: int = 2
    helper: str = ""


class Plugins:
    """Import packages whose code fails when it runs, and a host that offers components of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.syspath_prepend(str(folder))
        self._components: dict[str, list[Component]] = {"planners": [], "schedulers": [], "executors": []}

    def write(self, name: str, text: str = "") -> Path:
        """A file that must not be run."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\nraise SystemExit('this code was run')\n")
        return file

    def planner(self, name: str, load: str, **fields: Any) -> None:
        component = Planner(name=name, summary="", load=load, options=MadeOptions, **fields)
        self._components["planners"].append(component)

    def scheduler(self, name: str, load: str, **fields: Any) -> None:
        component = Scheduler(name=name, summary="", load=load, options=MadeOptions, **fields)
        self._components["schedulers"].append(component)

    def executor(self, name: str, load: str) -> None:
        self._components["executors"].append(Executor(name=name, summary="", load=load))

    def calls(self, slot: str, name: str, *calls: str) -> None:
        """Have a component declare that it calls these."""
        self._components[slot] = [
            replace(each, calls=calls) if each.name == name else each for each in self._components[slot]
        ]

    def host(self) -> Host:
        module = ModuleType("made")
        for slot, components in self._components.items():
            setattr(module, f"pipebench_{slot}", hookimpl(_offering(components)))
        return Host([ImportedPlugin(Provider("made", "1", "made"), module)])

    def never_imported(self, name: str) -> bool:
        return name not in sys.modules


def _offering(components: list[Component]) -> Callable[[], list[Component]]:
    def offer() -> list[Component]:
        return components

    return offer
