"""pipebench track: what became slower or worse, night after night."""

from importlib import import_module

import click

COMMANDS = {
    "record": "measure a night and add it to the history",
    "check": "judge the history, or two revisions side by side",
    "report": "the history as HTML and Markdown",
    "ack": "acknowledge changes, with a reason",
    "init": "write the nightly workflow of a repository",
}


class TrackGroup(click.Group):
    """Its commands live in pipebench.cli.commands.track.<name>, each a function `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"pipebench.cli.commands.track.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from pipebench.domain.errors import nearest

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"no command 'track {args[0]}' ({nearest(args[0], COMMANDS)})")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=TrackGroup)
def command() -> None:
    """Tell next morning that a planner became slower or its plans worse, without false alarms.

    record adds a night to the history, check judges it. Plans and work counters are compared exactly, from the
    second night; search times by their ratio to a calibration, after 30 nights of one class of machine.
    """
