"""The reader of tables of measured runs: CSV from strangers, bounded, every error with its row and column."""

import csv
import io
import os
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec

from pipebench.bench.accuracy.machine import NODE
from pipebench.bench.accuracy.run import COLUMNS, COUNTS, FIGURES, OPTIONAL, REQUIRED, Run
from pipebench.documents.decoding import no_utf8
from pipebench.documents.printable import one_line
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.limits import (
    LARGEST_RUNS_BYTES,
    MOST_COUNT,
    MOST_LETTERS,
    MOST_RATE,
    MOST_RUNS,
    MOST_SECONDS,
)
from pipebench.formats.files import read_file

PUBLISHED = "published"
"""The name of the table that ships."""
NODE_HINT = "write 1x8, nx8 or '2x8, 400 Gb/s a GPU'; empty: the usual node and its links are assumed"
_COMMA = re.compile(r"\d+,\d+")
_JSON = re.compile(r'\s*(\{\s*["}]|\[\s*[\[{"\]])')
_OTHER_SEPARATORS = (";", "\t", "|")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_TWO = re.compile(r"(\S+) \((\S+)\)", re.ASCII)


def read_runs(name: str) -> tuple[Run, ...]:
    """The runs of a file, or those that ship where the name is `published`.

    Raises PipebenchError for a file that cannot be read or is too large, columns that are missing or unknown, and
    a value that is not what its column holds.
    """
    if name == PUBLISHED:
        data = files("pipebench.bench.accuracy").joinpath("published.csv").read_bytes()
    else:
        if not os.path.lexists(name):
            raise PipebenchError(f"there is no file {name!r}", f"the runs that ship are called {PUBLISHED}")
        data = read_file(name)
    return parse_runs(data, name)


def parse_runs(data: bytes, source: str) -> tuple[Run, ...]:
    """The runs of a CSV. source: what errors call it. Raises PipebenchError as `read_runs` does."""
    if len(data) > LARGEST_RUNS_BYTES:
        raise PipebenchError(f"{source}: {len(data)} bytes, a table of runs has at most {LARGEST_RUNS_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise no_utf8(source, error) from None
    if _JSON.match(text):
        raise PipebenchError(
            f"{source}: this is JSON, and a table of runs is CSV",
            f"its first line names the columns: {','.join(COLUMNS)}",
        )
    rows = _rows(text, source)
    header = next(rows, None)
    if header is None:
        raise PipebenchError(
            f"{source}: the file is empty", f"its first line names the columns: {','.join(COLUMNS)}"
        )
    names = [cell.strip() for cell in header]
    _check_columns(names, source)
    found: dict[str, Run] = {}
    for number, cells in enumerate(rows, 2):
        if not any(map(str.strip, cells)):
            continue
        if number > MOST_RUNS + 1:
            raise PipebenchError(f"{source}: more than {MOST_RUNS} rows")
        if len(cells) != len(names):
            raise PipebenchError(f"{source}: row {number} has {len(cells)} cells, the header has {len(names)}")
        run = _Row(source, number, dict(zip(names, map(str.strip, cells), strict=True))).run()
        if run.id in found:
            raise PipebenchError(f"{source}: row {number}, column id: {_quoted(run.id)} is there twice")
        found[run.id] = run
    if not found:
        raise PipebenchError(f"{source}: there are no runs below the header")
    return tuple(found.values())


def _rows(text: str, source: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO(text, newline=""), strict=True)
    except csv.Error as error:
        raise PipebenchError(f"{source}: not a CSV: {error}") from None


def _check_columns(names: list[str], source: str) -> None:
    if not {*COLUMNS, *OPTIONAL}.intersection(names):
        raise _no_table(names, source)
    for name in names:
        if not name:
            raise PipebenchError(f"{source}: a column has no name", "the first line may end with a comma")
        if name not in (*COLUMNS, *OPTIONAL):
            known = nearest(name, (*COLUMNS, *OPTIONAL))
            raise PipebenchError(f"{source}: unknown column {_quoted(name)}", known)
        if names.count(name) > 1:
            raise PipebenchError(f"{source}: the column {name!r} is there twice")
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise PipebenchError(
            f"{source}: the column{'s' * (len(missing) > 1)} {', '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} missing",
            "a cell may be empty, its column may not be left out",
        )


def _no_table(names: list[str], source: str) -> PipebenchError:
    """That the first line names no column: cells are separated by another letter, or it is another text."""
    other = next((letter for letter in _OTHER_SEPARATORS if "iter_s" in names[0].split(letter)), None)
    if other is not None:
        return PipebenchError(
            f"{source}: cells are separated by {other!r}, those of a table of runs by commas",
            "save it as CSV with commas, and numbers with a point",
        )
    return PipebenchError(
        f"{source}: neither a table of runs nor a log that is read: the first line is {_quoted(names[0])}",
        "a table's first line names the columns (docs/reference/runs.md); logs are of Megatron-LM or torchtitan",
    )


class _Row:
    """The cells of one row by column."""

    def __init__(self, source: str, number: int, cells: dict[str, str]) -> None:
        self._source, self._number, self._cells = source, number, cells
        self._inferred: list[str] = []
        self._twofold: list[str] = []

    def run(self) -> Run:
        there = [name for name in (*COLUMNS, *OPTIONAL) if name in self._cells]
        values: dict[str, Any] = {name: value for name in there if (value := self._value(name)) is not None}
        return msgspec.convert(values | {"inferred": self._inferred, "twofold": self._twofold}, Run)

    def _value(self, name: str) -> str | int | float | None:
        text = self._cells[name]
        if len(text) > MOST_LETTERS:
            raise self._error(name, f"{len(text)} characters, a cell has at most {MOST_LETTERS}")
        if text.endswith("?"):
            text = text[:-1].rstrip()
            self._inferred.append(name)
        if not text:
            if name in REQUIRED:
                raise self._error(name, "it is empty")
            return None
        if name not in COUNTS and name not in FIGURES:
            if name == "nodes_gpus" and not NODE.match(text):
                raise self._error(name, f"{_quoted(text)} does not begin with the GPUs of a node", NODE_HINT)
            if name == "precision" and _TWO.fullmatch(text):
                self._twofold.append(name)
            return text
        two = _TWO.fullmatch(text)
        if two is not None:
            self._twofold.append(name)
            self._number_of(name, two[2])
            text = two[1]
        return self._number_of(name, text)

    def _number_of(self, name: str, text: str) -> int | float:
        if not _NUMBER.fullmatch(text):
            comma = _COMMA.fullmatch(text) is not None
            raise self._error(
                name, f"{_quoted(text)} is not a number", "write a point in place of the comma" if comma else None
            )
        number = float(text)
        if name in COUNTS:
            if not number.is_integer() or not 1 <= number <= MOST_COUNT:
                raise self._error(name, f"{_quoted(text)} is not a whole number from 1 to {MOST_COUNT}")
            return int(number)
        most = MOST_SECONDS if name.endswith("_s") else MOST_RATE
        if not 0 < number <= most:
            raise self._error(name, f"{_quoted(text)}, it must be above 0 and at most {most:g}")
        return number

    def _error(self, name: str, why: str, hint: str | None = None) -> PipebenchError:
        return PipebenchError(f"{self._source}: row {self._number}, column {name}: {why}", hint)


def _quoted(text: str) -> str:
    return one_line(repr(text[:60]))
