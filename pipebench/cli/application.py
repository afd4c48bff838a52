"""What commands share: the plugin host and its warnings."""

from typing import TYPE_CHECKING

from pipebench.cli.terminal import say

if TYPE_CHECKING:
    from pipebench.hooks.manager import Host


def open_host() -> "Host":
    """The host of the installed plugins, its warnings printed to stderr, one line each."""
    from pipebench.bench.searches.isolation.client import isolation

    isolation()  # it starts while this process imports the rest
    from pipebench.bench.cage.installed import installed_host

    host = installed_host()
    show_new_warnings(host)
    return host


def show_new_warnings(host: "Host") -> None:
    """Print the warnings that were not shown yet: a failed hook or a name clash comes up later than others."""
    for trouble in host.troubles[host.troubles_shown :]:
        say(f"warning: {trouble}", err=True)
    host.troubles_shown = len(host.troubles)
