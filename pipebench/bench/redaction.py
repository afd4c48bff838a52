"""Rows as they are passed on: without absolute paths, command lines and printed output, which tell of a person's
machine or hold what nobody else should see.
"""

import re
import shlex
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, get_type_hints

import msgspec
from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.hooks.syntax import Reference, parse_reference

LEFT_OUT = "…"
"""Stands for what is left out: in front of the last part of a path, or behind the name of a program."""
_PART = r"[^\s/'\"`:;,()\[\]{}<>|*?]+"
_PATHS = re.compile(
    rf"(?P<quote>['\"])(?P<quoted>~?/[^'\"/\n]*+/[^'\"\n]*+)(?P=quote)"
    rf"|(?:file:/{{2,3}}|(?<![\w.~/{LEFT_OUT}]))(?P<plain>~?(?:/{_PART})+/?)"
    r"|(?<!\w)(?P<drive>[A-Za-z]:\\[^\s'\"]+)"
)
"""Absolute paths: in quotes with spaces, else up to a space or a bracket; of other systems too."""
_EXIT_CODE = re.compile(r"exit code -?\d+")
SHOWN_LETTERS = 60
_TYPES = get_type_hints(Row)
_NAMES = tuple(
    name for name in Row.__struct_fields__ if "str" in str(_TYPES[name]) or "Witness" in str(_TYPES[name])
)
_WITH_TEXT = attrgetter(*_NAMES)
"""The fields of a row that hold text."""
_FIGURES = frozenset(("search_ratio", "counters"))
"""Of these the names alone are text."""


class Redaction:
    """Takes out of rows what is not passed on. Planners that differ keep names that differ.

    found: a line for each thing that is taken out, with its text.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.found: dict[str, None] = {}
        self._labels: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._clean: dict[Any, Any] = {}
        for row in rows:
            self.label(row.planner)

    def label(self, planner: str) -> str:
        """A planner as it is shown: without the path of its file, without the arguments of its program."""
        if planner not in self._labels:
            short = self._short(planner)
            taken, shown, number = set(self._labels.values()), short, 1
            while shown != planner and shown in taken:
                number += 1
                shown = f"{short} ({number})"
            self._labels[planner] = shown
            self._texts.clear()
            self._clean.clear()
            if shown != planner and planner.startswith("cmd:"):
                self.found[f"the command line {planner}"] = None
        return self._labels[planner]

    def text(self, text: str) -> str:
        """A text without absolute paths and without command lines of planners."""
        if text not in self._texts:
            self._texts[text] = self._without(text)
        return self._texts[text]

    def _without(self, text: str) -> str:
        for planner, shown in self._labels.items():
            if planner != shown:
                text = text.replace(planner, shown).replace(" ".join(planner.split()), shown)
        return _PATHS.sub(self._short_path, text)

    def row(self, row: Row) -> Row:
        """The row as it is passed on; its figures and hashes are untouched."""
        shown = self.label(row.planner)
        if row.output:
            what = f"{len(row.output)} letters, {_end_of(row.output)!r}"
            self.found[f"what {shown} printed: {what}"] = None
        changed: dict[str, Any] = {"planner": shown, "output": "", "reason": self._reason(row)}
        clean = self._clean
        for name, value in zip(_NAMES, _WITH_TEXT(row), strict=True):
            if not value:
                continue
            mark = value if isinstance(value, str) else tuple(value) if name in _FIGURES else id(value)
            if mark not in clean:
                changed.setdefault(name, self._field(value, mark))
        changed = {name: value for name, value in changed.items() if value != getattr(row, name)}
        return replace(row, **changed) if changed else row

    def _field(self, value: Any, mark: Any) -> Any:
        """One field of a row; where nothing in it is left out, its mark is clean from now on."""
        if isinstance(value, str):
            now = self.text(value)
        else:
            plain = msgspec.to_builtins(value)
            mapped = _mapped(plain, self.text)
            now = value if mapped == plain else msgspec.convert(mapped, type(value))
        if now == value:
            self._clean[mark] = value  # kept, so that no other gets its id
        return now

    def strings(self, value: Any) -> Any:
        """A value as plain data, every text in it without what is not passed on."""
        return _mapped(msgspec.to_builtins(value), self.text)

    def _short(self, planner: str) -> str:
        try:
            reference = parse_reference(planner)
        except PipebenchError:
            reference = Reference(planner)
        if reference.is_script and planner.startswith(("/", "~")):  # all of it is the path, spaces too
            return self._short_path_of(planner)
        if not reference.is_program:
            return self.text(planner)
        name, more = _program(reference.name.removeprefix("cmd:"))
        bare = f"cmd:{_PATHS.sub(self._short_path, name)}"
        return f"{bare} {LEFT_OUT}" if more or reference.options else bare

    def _short_path(self, match: re.Match[str]) -> str:
        quote = match["quote"] or ""
        return quote + self._short_path_of(match["quoted"] or match["plain"] or match["drive"]) + quote

    def _short_path_of(self, path: str) -> str:
        self.found[f"the path {path}"] = None
        last = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
        return f"{LEFT_OUT}/{last}"

    def _reason(self, row: Row) -> str:
        """Of a program that failed, the suite's own words alone: what it printed last stands behind them."""
        code = _EXIT_CODE.search(row.reason)
        if row.status == "crashed" and row.planner.startswith("cmd:") and code is not None:
            behind = row.reason[code.end() :].strip(": ")
            if behind:
                self.found[f"what {self.label(row.planner)} printed: {behind}"] = None
            return f"{self.label(row.planner)} failed with {code[0]}"
        return self.text(row.reason)


def is_left_out(planner: str) -> bool:
    """Whether a part of the planner's name was left out, so that it cannot be run."""
    return LEFT_OUT in planner


def _program(command: str) -> tuple[str, bool]:
    """The program of a command line, and whether more follows it."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return (words[0] if words else ""), len(words) > 1


def _end_of(output: str) -> str:
    line = (output.strip().splitlines() or [""])[-1]
    return line if len(line) <= SHOWN_LETTERS else f"{LEFT_OUT}{line[-SHOWN_LETTERS:]}"


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_mapped(key, change): _mapped(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(each, change) for each in value]
    return value
