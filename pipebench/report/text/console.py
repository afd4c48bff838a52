"""The console of all tables and lines. What is printed is plain, made printable; styles are `rich.text.Text`."""

import errno
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from pipebench.documents.printable import printable


class SafeConsole(Console):
    """Texts of files and plugins reach no terminal as commands."""

    def on_broken_pipe(self) -> None:
        """Raise EPIPE again: rich would end the process with an exit code of its own."""
        raise BrokenPipeError(errno.EPIPE, "broken pipe")

    def render_str(self, text: str, **how: Any) -> Text:
        """Before it is measured, so that columns are as wide as what they hold. Brackets and colons of a name are
        no markup and no emoji of rich: `[/b]` would end the command.
        """
        return super().render_str(printable(text), **how | {"markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments, free of characters that a terminal obeys."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)
