"""The host of a command: what the installed plugins offer, learnt in a child process that imports them."""

import contextlib
import os
import sys
from typing import TypeVar

import msgspec

from pipebench.bench.cage.calls import caged, checked_options, how_it_ended
from pipebench.bench.cage.work import CATALOGUE, RESULT, RUNNING
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import Isolation, isolation
from pipebench.bench.searches.isolation.confinement import passed_environment
from pipebench.domain.errors import PluginNotLoaded
from pipebench.hooks.descriptions import Catalogue
from pipebench.hooks.discovery import SUITE, Provider, Trouble, installed_entry_points, provider_of
from pipebench.hooks.installed.catalogue import DescribedHost, joined

CATALOGUE_S = 30.0
"""For importing all plugins and calling their hooks."""
T = TypeVar("T")


def installed_host() -> DescribedHost:
    """The host of the installed plugins. None of their modules is imported into this process.

    A plugin whose import ends its process, or does not end, is left out with a warning.
    Raises PluginNotLoaded when no plugin can be told apart as the cause.
    """
    catalogue = installed_catalogue()
    isolation().index = catalogue.index()
    return DescribedHost(catalogue, caged, _Rules().check)


def installed_catalogue() -> Catalogue:
    """What the installed plugins offer. Raises PluginNotLoaded as `installed_host` does.

    What ships is imported by one child, each other distribution by one of its own: no plugin has a hand in what
    another one offers.
    """
    groups: dict[str, dict[str, str]] = {}
    for point in installed_entry_points():
        provider = provider_of(point)
        groups.setdefault(provider.distribution, {})[str(provider)] = point.value
    return joined(_shipped(group) if name == SUITE else _asked(group) for name, group in groups.items())


def _asked(group: dict[str, str]) -> Catalogue:
    """What the plugins of one distribution offer, asked now."""
    catalogue, left_out = ask_plugins(isolation(), CATALOGUE, Catalogue, list(group))
    troubles = tuple(Trouble(provider, "plugin", f"while it is loaded {how}") for provider, how in left_out)
    catalogue = catalogue.only_of(group)
    return msgspec.structs.replace(catalogue, troubles=(*troubles, *catalogue.troubles))


_known: dict[tuple[tuple[str, str], ...], Catalogue] = {}
"""What ships, by import path and entry points."""


def _shipped(group: dict[str, str]) -> Catalogue:
    """What ships, asked once in this process: only an edit of the suite would change it. Trouble is not kept."""
    key = (*group.items(), ("", os.pathsep.join(sys.path)))
    if key not in _known:
        catalogue = _asked(group)
        if catalogue.troubles:
            return catalogue
        _known[key] = catalogue
    return _known[key]


def ask_plugins(
    server: Isolation, work: str, kind: type[T], chosen: list[str]
) -> tuple[T, list[tuple[Provider, str]]]:
    """What a child that imports the chosen plugins answers, and those that end its process, each with how."""
    left_out: dict[str, tuple[Provider, str]] = {}
    while True:
        running: list[Provider] = []
        made: list[T] = []

        def heard(message: bytes, running: list[Provider] = running, made: list[T] = made) -> None:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                if message[:1] == RUNNING:
                    running[:] = [msgspec.msgpack.decode(message[1:], type=Provider)]
                elif message[:1] == RESULT:
                    made.append(msgspec.msgpack.decode(message[1:], type=kind))

        errand = Errand(
            work=work,
            given=msgspec.msgpack.encode([name for name in chosen if name not in left_out]),
            warm=False,
            environment=passed_environment(os.environ, str(server.folders.own)),
            memory_bytes=SEARCH_MEMORY_BYTES,
        )
        ended = server.run(errand, CATALOGUE_S, heard=heard)
        if made:
            return made[-1], list(left_out.values())
        how = how_it_ended(ended, CATALOGUE_S)
        if not running or str(running[0]) in left_out or str(running[0]) not in chosen:
            raise PluginNotLoaded(f"the plugins cannot be listed: {how}", "see pipebench plugin doctor")
        left_out[str(running[0])] = running[0], how


class _Rules:
    """The rules of options, applied in a child process once for all equal options."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, bytes], dict[str, object]] = {}

    def check(self, slot: str, name: str, values: dict[str, object]) -> dict[str, object]:
        """The options as the component's class holds them. Raises InvalidValue."""
        key = slot, name, msgspec.msgpack.encode(values, order="sorted")
        if key not in self._known:
            self._known[key] = checked_options(slot, name, values)
        return self._known[key]
