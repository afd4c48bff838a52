"""Groups of commands, each imported when it is used, and the words that were typed."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import click

from pipebench.domain.errors import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Invocation:
    """The words typed after `pipebench`. alone: whether the process ends with this command."""

    words: tuple[str, ...]
    alone: bool = False


def invocation() -> Invocation:
    """The invocation of the running command."""
    return click.get_current_context().find_object(Invocation) or Invocation(())


class LazyGroup(click.Group):
    """A group whose commands are modules of `package`, or of the folder of their section, each with a function
    `command`.

    sections: by heading, name to one line of help. folders: by heading, the folder below `package` where its
    commands stand, if it has one. said_before: what stands before a name in messages.
    """

    sections: Mapping[str, Mapping[str, str]]
    folders: Mapping[str, str]
    package: str
    said_before: str

    @property
    def listed(self) -> list[str]:
        """The names of all commands, in the order of the help."""
        return [name for section in self.sections.values() for name in section]

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return self.listed

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.listed:
            return None
        heading = next(heading for heading, section in self.sections.items() if cmd_name in section)
        place = [self.package, *filter(None, [self.folders.get(heading)]), cmd_name]
        command: click.Command = import_module(".".join(place)).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.listed and not ctx.resilient_parsing:
            name = f"{self.said_before}{args[0]}"
            raise click.UsageError(f"no command {name!r} ({nearest(args[0], self.listed)})")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=text)
            for section in self.sections.values()
            for name, text in section.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        widest = max(map(len, self.listed))
        for heading, section in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in section.items()])


def lazy_group(
    package: str,
    sections: Mapping[str, Mapping[str, str]],
    said_before: str = "",
    folders: Mapping[str, str] | None = None,
) -> type[LazyGroup]:
    """The class of a group with these commands, for click.group(cls=…)."""
    fields = {"package": package, "sections": sections, "said_before": said_before, "folders": folders or {}}
    return type("Commands", (LazyGroup,), fields)
