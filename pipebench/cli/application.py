"""What commands share: the plugin host, consoles, JSON output."""

import errno
import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from pipebench.hooks.manager import Host


def open_host() -> "Host":
    """The host of the installed plugins, its warnings printed to stderr, one line each."""
    from pipebench.bench.searches.isolation.client import isolation

    isolation()  # it starts while this process imports the rest
    from pipebench.bench.cage.installed import installed_host

    host = installed_host()
    for line in host.warnings:
        click.echo(f"warning: {line}", err=True)
    host.warnings_shown = len(host.warnings)
    return host


def show_new_warnings(host: "Host") -> None:
    """Print the warnings that came up after the host was opened (a failed hook, a name clash)."""
    for line in host.warnings[host.warnings_shown :]:
        click.echo(f"warning: {line}", err=True)
    host.warnings_shown = len(host.warnings)


def console(stderr: bool = False) -> "Console":
    """Data goes to stdout, progress to stderr; 80 columns where there is no terminal."""
    from rich.console import Console

    class PipeConsole(Console):
        """Raise EPIPE again: click ends quietly when the reader of stdout is gone."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, "broken pipe")

    made = PipeConsole(stderr=stderr, highlight=False)
    if not made.is_terminal and not made._environ.get("COLUMNS"):
        made.width = 80
    return made


def print_json(value: Any) -> None:
    """A value of the domain, or plain data, as indented JSON on stdout."""
    import msgspec

    plain = msgspec.to_builtins(value, builtin_types=())
    sys.stdout.write(json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
