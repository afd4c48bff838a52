"""Options under headings, for commands that have many."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pipebench.domain.workload import PINNED, WHAT, WHERE

F = TypeVar("F", bound=Callable[..., Any])

WHO, HOW, OUTPUT = "Who (planners and schedulers)", "How to run", "Output"
OPTION_GROUPS = (WHAT, WHERE, PINNED, WHO, HOW, OUTPUT)
"""Headings of options, in the order of a help text."""
NO_GROUP = "Help"
"""The heading of options that stand under none of OPTION_GROUPS."""


class GroupedOption(click.Option):
    """An option that stands under a heading of OPTION_GROUPS in the help of a GroupedCommand."""

    def __init__(self, *spellings: Any, group: str, **attributes: Any) -> None:
        super().__init__(*spellings, **attributes)
        self.group = group


def option(group: str, *spellings: str, **attributes: Any) -> Callable[[F], F]:
    """As click.option, under a heading of OPTION_GROUPS."""
    return click.option(*spellings, cls=GroupedOption, group=group, **attributes)


class GroupedCommand(click.Command):
    """A command whose help lists options under the headings of OPTION_GROUPS, others last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        grouped: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*OPTION_GROUPS, NO_GROUP)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                grouped[param.group if isinstance(param, GroupedOption) else NO_GROUP].append(record)
        for heading, records in grouped.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
