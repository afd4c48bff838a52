"""The host of a command: what the installed plugins offer, learnt in a child process that imports them."""

import contextlib

import msgspec

from pipebench.bench.cage.calls import caged, checked_options, how_it_ended
from pipebench.bench.cage.work import CATALOGUE, RESULT, RUNNING
from pipebench.bench.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import child_environment, isolation
from pipebench.domain.errors import PluginNotLoaded
from pipebench.hooks.catalogue import DescribedHost
from pipebench.hooks.descriptions import Catalogue
from pipebench.hooks.discovery import Provider, exclusion_warning

CATALOGUE_S = 30.0
"""For importing all plugins and calling their hooks."""


def installed_host() -> DescribedHost:
    """The host of the installed plugins. None of their modules is imported into this process.

    A plugin whose import ends its process, or does not end, is left out with a warning.
    Raises PluginNotLoaded when no plugin can be told apart as the cause.
    """
    catalogue = installed_catalogue()
    isolation().index = catalogue.index()
    return DescribedHost(catalogue, caged, _Rules().check)


def installed_catalogue() -> Catalogue:
    """What the installed plugins offer. Raises PluginNotLoaded as `installed_host` does."""
    without: list[str] = []
    warnings: list[str] = []
    while True:
        running: list[Provider] = []
        made: list[Catalogue] = []

        def heard(message: bytes, running: list[Provider] = running, made: list[Catalogue] = made) -> None:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                if message[:1] == RUNNING:
                    running[:] = [msgspec.msgpack.decode(message[1:], type=Provider)]
                elif message[:1] == RESULT:
                    made.append(msgspec.msgpack.decode(message[1:], type=Catalogue))

        errand = Errand(
            work=CATALOGUE,
            given=msgspec.msgpack.encode(without),
            warm=False,
            environment=child_environment(),
            memory_bytes=SEARCH_MEMORY_BYTES,
        )
        ended = isolation().run(errand, CATALOGUE_S, heard=heard)
        if made:
            return msgspec.structs.replace(made[-1], warnings=(*warnings, *made[-1].warnings))
        how = how_it_ended(ended, CATALOGUE_S)
        if not running or str(running[0]) in without:
            raise PluginNotLoaded(f"the plugins cannot be listed: {how}", "see pipebench plugin doctor")
        without.append(str(running[0]))
        warnings.append(exclusion_warning(running[0], f"while it is loaded {how}"))


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
