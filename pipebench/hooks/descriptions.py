"""Descriptors as data: what crosses from the process that imports a plugin to the process of the command."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

import msgspec

from pipebench.domain.value import Value
from pipebench.hooks.descriptors import SLOTS, Component, slot_of
from pipebench.hooks.discovery import Provider, Trouble, first_line
from pipebench.hooks.option_types import OptionCheck, OptionsDescription, describe_class, options_class


class Offer(Value, frozen=True, kw_only=True):
    """A component of a slot as data.

    fields: the fields of its descriptor without `options`, as plain data.
    options: None for a component without options.
    entry: what the entry point of its plugin names.
    """

    fields: dict[str, Any]
    options: OptionsDescription | None = None
    provider: Provider
    entry: str = ""

    @property
    def name(self) -> str:
        """The name of the component."""
        return str(self.fields.get("name"))


class Catalogue(Value, frozen=True, kw_only=True):
    """All that the installed plugins offer.

    troubles: of loading, one for each plugin that is left out.
    slots: the components of each slot, in the order of their names.
    slot_troubles: by slot, one for each component that is left out.
    constants: by entry point, what its module binds to names that start with PIPEBENCH_.
    """

    troubles: tuple[Trouble, ...] = ()
    slots: dict[str, tuple[Offer, ...]] = {}
    slot_troubles: dict[str, tuple[Trouble, ...]] = {}
    constants: dict[str, dict[str, Any]] = {}

    def only_of(self, providers: Mapping[str, str]) -> "Catalogue":
        """What these plugins offer: `str(provider)` to its entry point. All else is left out."""
        slots = {
            slot: tuple(each for each in offers if providers.get(str(each.provider)) == each.entry)
            for slot, offers in self.slots.items()
        }
        own = set(providers.values())
        return msgspec.structs.replace(
            self, slots=slots, constants={entry: each for entry, each in self.constants.items() if entry in own}
        )

    def index(self) -> dict[str, dict[str, str]]:
        """Slot and name of each component to the entry point that provides it."""
        return {slot: {offer.name: offer.entry for offer in offers} for slot, offers in self.slots.items()}


def describe_offer(slot: str, component: Component, provider: Provider, entry: str) -> Offer:
    """A component as data. Raises whatever describing its options raises."""
    plain = {name: msgspec.to_builtins(getattr(component, name)) for name in _types(slot)}
    return Offer(fields=plain, options=describe_class(component.options), provider=provider, entry=entry)


def component_of(slot: str, given: Offer, check: OptionCheck | None = None) -> Component:
    """The descriptor that an offer describes. check: applies the rules of its options.

    Raises msgspec.ValidationError for data that are no such descriptor.
    """
    types = _types(slot)
    values = {name: msgspec.convert(given.fields[name], types[name]) for name in types if name in given.fields}
    return SLOTS[slot](**values, options=options_class(given.options, check))


def undescribed(component: Component) -> str | None:
    """Why a descriptor that has no other flaw cannot be described as data; None where it can."""
    slot = slot_of(component)
    try:
        component_of(slot, describe_offer(slot, component, Provider("", "", ""), ""))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the options are the plugin's own class, its defaults may break its own rules
        return first_line(error) or type(error).__name__
    return None


@cache
def _types(slot: str) -> dict[str, Any]:
    """Fields of the descriptors of a slot and their types, `options` apart."""
    kind = SLOTS[slot]
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.name != "options"}
