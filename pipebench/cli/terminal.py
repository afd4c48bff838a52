"""Where commands print: the one place through which text reaches a terminal, free of characters that it obeys."""

import codecs
import io
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from pipebench.documents.printable import printable, printable_json
from pipebench.system.files import discard

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line of text. err: to stderr. nl: end it."""
    click.echo(printable(str(text)), err=err, nl=nl)


def width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def print_json(value: Any) -> None:
    """A value of the domain, or plain data, as indented JSON on stdout; letters that it has not are escaped."""
    import msgspec

    plain = msgspec.to_builtins(value, builtin_types=())
    has_all = codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")
    sys.stdout.write(printable_json(json.dumps(plain, indent=2, ensure_ascii=not has_all)) + "\n")


def console(stderr: bool = False) -> "Console":
    """Data goes to stdout, progress to stderr; 80 columns where there is no terminal."""
    from pipebench.report.text.console import SafeConsole

    made = SafeConsole(stderr=stderr, highlight=False)
    if not made.is_terminal and not made._environ.get("COLUMNS"):
        made.width = 80
    return made


class _Stream(io.FileIO):
    """Standard output or error. Once its reader has gone, what is written goes nowhere."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            discard(self.fileno())
            return memoryview(data).nbytes


def outlive_readers() -> None:
    """From now on a command whose output is cut short (`| head`) goes on to its end, and to its own exit code.

    It stands below all that prints: click, rich, `print`, and Python's flush at exit.
    """
    for name in ("stdout", "stderr"):
        old = getattr(sys, name)
        if isinstance(old, io.TextIOWrapper):  # None where the caller closed it
            old.flush()
            setattr(sys, name, _lasting(old))


def _lasting(old: io.TextIOWrapper) -> io.TextIOWrapper:
    """The same stream, as it is buffered and encoded, on a descriptor that outlives its reader.

    A letter that its encoding has not (a dagger in Latin-1) is written as `?`.
    """
    raw = _Stream(old.fileno(), "w", closefd=False)
    unbuffered = isinstance(old.buffer, io.RawIOBase)
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        encoding=old.encoding,
        errors="replace" if old.errors in ("strict", "surrogateescape") else old.errors,
        newline="\n",
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )
