"""What commands share: the plugin host and its warnings."""

from pipebench.cli.terminal import say
from pipebench.hooks.manager import Host


def open_host() -> Host:
    """The host, its warnings printed to stderr, one line each."""
    host = Host()
    for line in host.warnings:
        say(f"warning: {line}", err=True)
    host.warnings_shown = len(host.warnings)
    return host


def show_new_warnings(host: Host) -> None:
    """Print the warnings that came up after the host was opened (a failed hook, a name clash)."""
    for line in host.warnings[host.warnings_shown :]:
        say(f"warning: {line}", err=True)
    host.warnings_shown = len(host.warnings)
