"""Where commands print: the one place through which text reaches a terminal, free of characters that it obeys."""

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from pipebench.documents.printable import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line of text. err: to stderr. nl: end it."""
    click.echo(printable(str(text)), err=err, nl=nl)


def width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def print_json(value: Any) -> None:
    """A value of the domain, or plain data, as indented JSON on stdout."""
    import msgspec

    plain = msgspec.to_builtins(value, builtin_types=())
    sys.stdout.write(printable_json(json.dumps(plain, indent=2, ensure_ascii=False)) + "\n")


def console(stderr: bool = False) -> "Console":
    """Data goes to stdout, progress to stderr; 80 columns where there is no terminal."""
    from pipebench.report.text.console import SafeConsole

    made = SafeConsole(stderr=stderr, highlight=False)
    if not made.is_terminal and not made._environ.get("COLUMNS"):
        made.width = 80
    return made
