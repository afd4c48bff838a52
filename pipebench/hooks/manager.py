"""The host: which components exist, who provides them, and how to load one.

`Host` imports plugins into its own process: the child processes of searches and hooks have one. The process of a
command has a `hooks.catalogue.DescribedHost`, which knows components by their descriptions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, cast

import pluggy

from pipebench.domain.errors import PipebenchError, PluginNotLoaded, nearest, unknown
from pipebench.hooks import specs
from pipebench.hooks.descriptions import undescribed
from pipebench.hooks.descriptors import SLOTS, Component
from pipebench.hooks.discovery import (
    ImportedPlugin,
    Provider,
    Trouble,
    cause,
    clash,
    installed_entry_points,
    load_plugins,
    module_constants,
)
from pipebench.hooks.flaws import flaw

C = TypeVar("C", bound=Component)
_HOOKS = [f"pipebench_{slot}" for slot in SLOTS]
MARK = "write @hookimpl (from pipebench.hooks) above it"
"""What makes a function of a plugin a hook, in the words of a warning."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A component and its provider. entry: what the entry point of its plugin names."""

    component: Component
    provider: Provider
    entry: str = ""


class Host:
    """All components of all plugins that load.

    troubles: one for each plugin or component that is left out.
    code_here: whether `load` gives the code itself, imported into this process.
    """

    code_here = True

    def __init__(self, plugins: list[ImportedPlugin] | None = None) -> None:
        self.troubles: list[Trouble] = []
        if plugins is None:
            plugins, self.troubles = load_plugins(installed_entry_points())
        self._providers: dict[str, Provider] = {}
        self._entries: dict[str, str] = {}
        self._constants: dict[str, dict[str, Any]] = {}
        for found in plugins:
            self._register(found)
        self._slots: dict[str, dict[str, Registration]] = {}
        self.troubles_shown = 0

    @cached_property
    def _manager(self) -> pluggy.PluginManager:
        """Made where there are plugins to ask: a child process asks for one component by its entry point."""
        made = pluggy.PluginManager("pipebench")
        made.add_hookspecs(specs)
        return made

    def _register(self, found: ImportedPlugin) -> None:
        key = str(found.provider)
        try:
            self._manager.register(found.module, name=key)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # pluggy's validation of a plugin's hooks
            self.troubles.append(Trouble(found.provider, "plugin", cause(error)))
        else:
            self._providers[key] = found.provider
            self._entries[key] = found.entry
            self._constants[found.entry] = module_constants(found.module)
            for caller in self._manager.get_hookcallers(found.module) or ():
                if not caller.has_spec():
                    why, hint = f"there is no hook {caller.name!r}", nearest(caller.name, _HOOKS)
                    self.troubles.append(Trouble(found.provider, "no hook", why, remedy=hint))
            for name in _HOOKS:
                if callable(getattr(found.module, name, None)) and not self._is_marked(found.module, name):
                    why = f"{name} is no hook: it is not marked as one"
                    self.troubles.append(Trouble(found.provider, "no mark", why, remedy=MARK))

    def _is_marked(self, module: ModuleType, name: str) -> bool:
        return any(caller.name == name for caller in self._manager.get_hookcallers(module) or ())

    def slot(self, slot: str) -> dict[str, Registration]:
        """The components of a slot by name, sorted. A clash keeps the first provider and warns of both."""
        if slot not in SLOTS:
            raise unknown("slot", slot, SLOTS)
        if slot not in self._slots:
            offered: dict[str, Registration] = {}
            hook = getattr(self._manager.hook, f"pipebench_{slot}")
            implementations = {impl.plugin_name: impl.function for impl in hook.get_hookimpls()}
            for key, provider in self._providers.items():
                if key in implementations:
                    self._collect(slot, provider, implementations[key], offered)
            self._slots[slot] = dict(sorted(offered.items()))
        return self._slots[slot]

    def _collect(
        self, slot: str, provider: Provider, implementation: Callable[[], Any], offered: dict[str, Registration]
    ) -> None:
        try:
            components = list(implementation())
            flaws = [flaw(component, SLOTS[slot]) or undescribed(component) for component in components]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            self.troubles.append(Trouble(provider, "hook", cause(error), slot))
            return
        for component, wrong in zip(components, flaws, strict=True):
            if wrong is not None:
                named = getattr(component, "name", None)
                trouble = Trouble(provider, "component", wrong, slot, None if named is None else str(named))
                self.troubles += [trouble] if trouble not in self.troubles else []
            elif component.name in offered:
                first = offered[component.name].provider
                self.troubles.append(clash(slot, component.name, provider, first))
            else:
                entry = self._entries.get(str(provider), "")
                offered[component.name] = Registration(component, provider, entry)

    def find(self, slot: str, name: str) -> Registration:
        """A component by name. Raises PipebenchError with the nearest name and what could not be loaded."""
        components = self.slot(slot)
        if name in components:
            return components[name]
        error = unknown(slot.removesuffix("s"), name, components)
        if self.troubles:
            error.hint = f"{error.hint}; {len(self.troubles)} plugin(s) could not be loaded"
        raise error

    def index(self) -> dict[str, dict[str, str]]:
        """Slot and name of each component that a search may ask for to its entry point."""
        return {
            slot: {name: each.entry for name, each in self.slot(slot).items()}
            for slot in ("planners", "schedulers", "executors")
        }

    def constants(self, entry: str) -> dict[str, Any]:
        """What the plugin of an entry point binds to names that start with PIPEBENCH_, as plain data."""
        return self._constants.get(entry, {})

    def load(self, component: Component) -> Callable[..., Any]:
        """The callable behind a component. Raises PluginNotLoaded with the cause."""
        module_name, _, attribute = component.load.partition(":")
        what = f"{component.name!r} could not be loaded from {component.load!r}"
        try:
            found = getattr(import_module(module_name), attribute)
        except (PipebenchError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a plugin's import may raise anything, SystemExit included
            raise PluginNotLoaded(f"{what}: {cause(error)}") from error
        if not callable(found):
            raise PluginNotLoaded(f"{what}: {type(found).__name__} is not callable")
        return cast(Callable[..., Any], found)
