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
    for line in host.warnings:
        say(f"warning: {line}", err=True)
    host.warnings_shown = len(host.warnings)
    return host


def show_new_warnings(host: "Host") -> None:
    """Print the warnings that came up after the host was opened (a failed hook, a name clash)."""
    for line in host.warnings[host.warnings_shown :]:
        say(f"warning: {line}", err=True)
    host.warnings_shown = len(host.warnings)
