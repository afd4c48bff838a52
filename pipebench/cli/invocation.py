"""What was typed, for commands that tell or use it."""

from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class Invocation:
    """The words behind `pipebench`. alone: the process ends with this command."""

    words: tuple[str, ...]
    alone: bool = False


def invocation() -> Invocation:
    """That of the command which runs."""
    return click.get_current_context().find_object(Invocation) or Invocation(())
