"""Groups of commands, each imported when it is used, and the words that were typed."""

from dataclasses import dataclass
from importlib import import_module

import click

from pipebench.domain.errors import nearest


@dataclass(frozen=True, slots=True)
class Invocation:
    """The words typed after `pipebench`. alone: whether the process ends with this command."""

    words: tuple[str, ...]
    alone: bool = False


def invocation() -> Invocation:
    """The invocation of the running command."""
    return click.get_current_context().find_object(Invocation) or Invocation(())


class LazyGroup(click.Group):
    """A group whose commands are modules `package`.<name>, each with a function `command`.

    listed: name to one line of help.
    """

    listed: dict[str, str]
    package: str

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.listed:
            return None
        command: click.Command = import_module(f"{self.package}.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.listed:
            raise click.UsageError(f"no command {args[0]!r} ({nearest(args[0], self.listed)})")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(self.listed.items()))


def lazy_group(package: str, listed: dict[str, str]) -> type[LazyGroup]:
    """The class of a group with these commands, for click.group(cls=…)."""
    return type("Commands", (LazyGroup,), {"package": package, "listed": listed})
