"""pipebench plugin: for those who write plugins, and those who have trouble with one."""

import click

from pipebench.cli.groups import lazy_group
from pipebench.cli.terminal import say

COMMANDS = {
    "new": "a complete package with a plugin that works",
    "check": "the conformance kit on a plugin, a component, a file or a program",
    "list": "what is installed, what each costs to import",
    "doctor": "what is broken, and the command that mends it",
}


@click.group(
    cls=lazy_group("pipebench.cli.commands.reference.plugin", {"Commands": COMMANDS}, "plugin "),
    invoke_without_command=True,
)
@click.pass_context
def command(context: click.Context) -> None:
    """Write, check and look after plugins."""
    if context.invoked_subcommand is None:
        say(context.get_help())
