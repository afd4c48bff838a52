"""The host of a command: what the installed plugins offer, learnt in a child process that imports them."""

import os
import time

import msgspec

from pipebench.bench.cage.calls import caged, checked_options, how_it_ended
from pipebench.bench.cage.work import CATALOGUE, RESULT, RUNNING
from pipebench.bench.searches.isolation.client import ChildExit, isolation
from pipebench.bench.searches.isolation.errand import Errand
from pipebench.bench.searches.isolation.wire import BrokenWire, frames
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
        ended = isolation().run(
            Errand(
                work=CATALOGUE,
                given=msgspec.msgpack.encode(without),
                kernels=False,
                folder=os.path.dirname(os.path.abspath(__file__)),
                environment=dict(os.environ),
                memory_bytes=0,
            ),
            time.monotonic() + CATALOGUE_S,
        )
        catalogue, last = _read(ended)
        if catalogue is not None:
            return msgspec.structs.replace(catalogue, warnings=(*warnings, *catalogue.warnings))
        how = how_it_ended(ended, CATALOGUE_S)
        if last is None or str(last) in without:
            raise PluginNotLoaded(f"the plugins cannot be listed: {how}", "see pipebench plugin doctor")
        without.append(str(last))
        warnings.append(exclusion_warning(last, f"while it is loaded {how}"))


def _read(ended: ChildExit) -> tuple[Catalogue | None, Provider | None]:
    """The catalogue where there is one, and whose code ran last."""
    catalogue, last = None, None
    try:
        for message in frames(ended.sent):
            if message[:1] == RUNNING:
                last = msgspec.msgpack.decode(message[1:], type=Provider)
            elif message[:1] == RESULT:
                catalogue = msgspec.msgpack.decode(message[1:], type=Catalogue)
    except (BrokenWire, msgspec.DecodeError, UnicodeDecodeError):
        return None, last
    return catalogue, last


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
