"""What a report prints on a console that is no terminal."""

from collections.abc import Callable
from io import StringIO
from typing import TypeVar

from rich.console import Console

from pipebench.report.text.console import SafeConsole

T = TypeVar("T")


def printed(report: Callable[[Console, T], None], value: T, width: int = 80) -> str:
    """The text of a report."""
    out = StringIO()
    report(SafeConsole(file=out, width=width, highlight=False), value)
    return out.getvalue()
