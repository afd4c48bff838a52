"""The catalogue of installed plugins: made where plugins are imported, read where they are not."""

from collections.abc import Callable, Collection, Iterable
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from pipebench.domain.errors import PluginNotLoaded, unknown
from pipebench.hooks.descriptions import Catalogue, Offer, component_of, describe_offer
from pipebench.hooks.descriptors import SLOTS, Component, slot_of
from pipebench.hooks.discovery import (
    GROUP,
    ImportedPlugin,
    Provider,
    Trouble,
    cause,
    clash,
    installed_entry_points,
    load_plugins,
    module_constants,
    provider_of,
)
from pipebench.hooks.manager import Host, Registration

Announce = Callable[[Provider], None]
"""Told whose code runs next, so that it is known whose code ended the process."""


class _AnnouncingHost(Host):
    """A host that says whose hook it calls, before it calls it."""

    def __init__(self, plugins: list[ImportedPlugin], announce: Announce) -> None:
        self._announce = announce
        super().__init__(plugins)

    def _collect(
        self, slot: str, provider: Provider, implementation: Callable[[], Any], offered: dict[str, Registration]
    ) -> None:
        self._announce(provider)
        super()._collect(slot, provider, implementation, offered)


def make_catalogue(announce: Announce, chosen: Collection[str]) -> Catalogue:
    """Import plugins into this process and describe what they offer. chosen: which, `str(provider)`."""
    plugins: list[ImportedPlugin] = []
    troubles: list[Trouble] = []
    for point in installed_entry_points():
        provider = provider_of(point)
        if str(provider) not in chosen:
            continue
        announce(provider)
        loaded, found = load_plugins([point])
        plugins += loaded
        troubles += found
    host = _AnnouncingHost(plugins, announce)
    troubles += host.troubles
    slots, slot_troubles = {}, {}
    for slot in SLOTS:
        before = len(host.troubles)
        registered = host.slot(slot).values()
        slot_troubles[slot] = tuple(host.troubles[before:])
        slots[slot] = tuple(describe_offer(slot, each.component, each.provider, each.entry) for each in registered)
    constants = {each.entry: module_constants(each.module) for each in plugins}
    return Catalogue(troubles=tuple(troubles), slots=slots, slot_troubles=slot_troubles, constants=constants)


def joined(catalogues: Iterable[Catalogue]) -> Catalogue:
    """One catalogue of several. A name that two offer in one slot is the first one's, which is a trouble."""
    troubles: list[Trouble] = []
    slots: dict[str, dict[str, Offer]] = {slot: {} for slot in SLOTS}
    slot_troubles: dict[str, list[Trouble]] = {slot: [] for slot in SLOTS}
    constants: dict[str, dict[str, Any]] = {}
    for each in catalogues:
        troubles += each.troubles
        constants |= each.constants
        for slot, offered in slots.items():
            slot_troubles[slot] += each.slot_troubles.get(slot, ())
            for offer in each.slots.get(slot, ()):
                first = offered.setdefault(offer.name, offer)
                if first is not offer:
                    slot_troubles[slot].append(clash(slot, offer.name, offer.provider, first.provider))
    return Catalogue(
        troubles=tuple(troubles),
        slots={slot: tuple(offered[name] for name in sorted(offered)) for slot, offered in slots.items()},
        slot_troubles={slot: tuple(each) for slot, each in slot_troubles.items()},
        constants=constants,
    )


class DescribedHost(Host):
    """All components of a catalogue. No module of a plugin is imported.

    run: gives the callable that runs a component's code in a process of its own; it is told the distribution.
    check: applies the rules of a component's options (slot, name, values) there.
    """

    code_here = False

    def __init__(
        self,
        catalogue: Catalogue,
        run: Callable[[Component, str], Callable[..., Any]],
        check: Callable[[str, str, dict[str, Any]], dict[str, Any]],
    ) -> None:
        super().__init__([])
        self.catalogue = catalogue
        self._index = catalogue.index()
        self._constants = catalogue.constants
        self.troubles = list(catalogue.troubles)
        self._run, self._check = run, check

    def slot(self, slot: str) -> dict[str, Registration]:
        """The components of a slot by name, sorted."""
        if slot not in SLOTS:
            raise unknown("slot", slot, SLOTS)
        if slot not in self._slots:
            self.troubles += self.catalogue.slot_troubles.get(slot, ())
            self._slots[slot] = {}
            for each in self.catalogue.slots.get(slot, ()):
                try:
                    component = component_of(slot, each, self._checker(slot, each.name))
                except (msgspec.ValidationError, TypeError, KeyError) as error:
                    self.troubles.append(Trouble(each.provider, "component", str(error), slot, each.name))
                else:
                    self._slots[slot][component.name] = Registration(component, each.provider, each.entry)
        return self._slots[slot]

    def _checker(self, slot: str, name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda values: self._check(slot, name, values)

    def index(self) -> dict[str, dict[str, str]]:
        """Slot and name of each component to its entry point."""
        return self._index

    def load(self, component: Component) -> Callable[..., Any]:
        """A callable that runs the component's code in a process of its own."""
        slot = slot_of(component)
        registered = self.slot(slot).get(component.name)
        return self._run(component, registered.provider.distribution if registered else "")


class ChildHost(Host):
    """The host of a child process: it imports the one plugin that provides what is asked for.

    index: slot and name of each component to its entry point. A name that is not in it is looked for in all
    installed plugins.
    """

    def __init__(self, index: dict[str, dict[str, str]]) -> None:
        super().__init__([])
        self._index = index
        self._single: dict[tuple[str, str], Registration] = {}
        self._all: Host | None = None

    def slot(self, slot: str) -> dict[str, Registration]:
        """The components of a slot by name, sorted; all plugins are imported."""
        if self._all is None:
            self._all = Host()
            self.troubles = self._all.troubles
        return self._all.slot(slot)

    def find(self, slot: str, name: str) -> Registration:
        """A component by name. Raises PipebenchError; PluginNotLoaded where its plugin fails."""
        entry = self._index.get(slot, {}).get(name)
        if not entry:
            return super().find(slot, name)
        if (slot, name) not in self._single:
            self._single[slot, name] = self._import(slot, name, entry)
        return self._single[slot, name]

    def _import(self, slot: str, name: str, entry: str) -> Registration:
        try:
            module = EntryPoint("", entry, GROUP).load()
            offered = getattr(module, f"pipebench_{slot}")()
            component = next(each for each in offered if getattr(each, "name", None) == name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            raise PluginNotLoaded(f"{name!r} could not be loaded from {entry!r}: {cause(error)}") from error
        return Registration(component, Provider("", "", entry), entry)
