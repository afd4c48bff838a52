"""What `plugin list` and `plugin doctor` look at, learnt in child processes that import plugins."""

import msgspec

from pipebench.bench.cage.calls import how_it_ended
from pipebench.bench.cage.installed import ask_plugins
from pipebench.bench.cage.work import INVENTORY, LOADS
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import Isolation, child_environment, isolation
from pipebench.hooks.discovery import installed_entry_points, provider_of
from pipebench.hooks.installed.doctor import Loading
from pipebench.hooks.installed.inventory import PluginEntry

LOADS_S = 120.0
"""For importing the code of a distribution's components."""


def installed_inventory() -> list[PluginEntry]:
    """Every installed plugin, with what its import costs and does. Raises PluginNotLoaded as `installed_host`."""
    values = {str(provider_of(point)): point.value for point in installed_entry_points()}
    server = Isolation()  # one that has imported nothing yet, so that each plugin is charged for its own imports
    try:
        made, left_out = ask_plugins(server, INVENTORY, list[PluginEntry], list(values))
    finally:
        server.close()
    lost = [
        PluginEntry(provider=provider, module=values[str(provider)], error=f"while it is loaded {how}")
        for provider, how in left_out
    ]
    return [*made, *lost]


def load_components(named: list[tuple[str, str]]) -> Loading:
    """Load the code of components, slot and name, in one child process."""
    errand = Errand(
        work=LOADS,
        given=msgspec.msgpack.encode(named),
        warm=False,
        environment=child_environment(),
        memory_bytes=0,
    )
    ended = isolation().run(errand, LOADS_S)
    try:
        return Loading(msgspec.msgpack.decode(ended.messages[0][1:], type=list[tuple[str, str, str, str | None]]))
    except (IndexError, msgspec.DecodeError, UnicodeDecodeError):
        return Loading(ended=how_it_ended(ended, LOADS_S))
