"""The form of a certificate: JSON of whole numbers, texts and lists, of bounded size, sealed.

Imports the standard library only, as all that checks a certificate does (`check.py`).
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

KIND, VERSION = "certificate", 2
MOST_BYTES = 64 * 2**20
"""Of a file."""
MOST_ELEMENTS = 8_000_000
"""Values of a file, about: its commas and opening brackets."""
MOST_DIGITS = 30
MOST = 2**62
"""The largest number of a certificate."""
MOST_LETTERS = 1000
"""Of a text."""
NO_CERTIFICATE = f'it is no certificate: one begins with {{"pipebench": "{KIND}", "version": {VERSION}'


class Refused(Exception):
    """The certificate proves nothing. place: where in the document, such as content.plan.stages[2]."""

    def __init__(self, place: str, words: str) -> None:
        super().__init__(f"{place}: {words}" if place else words)
        self.place, self.words = place, words


def seal_of(content: Any) -> str:
    """SHA-256, in hex, of the content as JSON with sorted keys and without blanks."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def written(content: Any) -> bytes:
    """The document of a content, one line for each part of it."""
    lines = [f'"{name}":{json.dumps(content[name], separators=(",", ":"))}' for name in sorted(content)]
    head = f'{{"pipebench":"{KIND}","version":{VERSION},"seal":"{seal_of(content)}","content":{{\n'
    return (head + ",\n".join(lines) + "\n}}\n").encode()


def read(path: str) -> bytes:
    """The bytes of a file. Raises Refused where it is too large or no file, OSError where it cannot be read."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Refused("", "it is no file")
        data = opened.read(MOST_BYTES + 1) if status.st_size <= MOST_BYTES else None
    if data is None or len(data) > MOST_BYTES:
        raise Refused("", f"it has over {MOST_BYTES // 2**20} MiB: no certificate has")
    return data


def opened(data: bytes) -> "Part":
    """The content of a document whose form and seal are right. Raises Refused."""
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > MOST_ELEMENTS:
        raise Refused("", f"it has over {MOST_ELEMENTS} values: no certificate has")
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_integer,
        )
    except _NoWhole as number:
        if _other_kind(text):
            raise Refused("", NO_CERTIFICATE) from None
        words = f"{number.text[:40]} is no whole number: a certificate has no others"
        raise Refused(_place(text, number.text), words) from None
    except RecursionError:
        raise Refused("", "its brackets are nested too deep") from None
    except UnicodeDecodeError as error:
        raise Refused("", f"it is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Refused("", f"it is no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    if not isinstance(value, dict) or value.get("pipebench") != KIND:
        raise Refused("", NO_CERTIFICATE)
    whole = Part(value, "")
    whole.text("pipebench")
    if whole.number("version") != VERSION:
        raise Refused("version", f"is {value['version']}, this checker reads {VERSION}")
    sealed, content = whole.text("seal"), whole.part("content")
    whole.end()
    if sealed != seal_of(value["content"]):
        raise Refused("seal", "is not that of the content: something in it was changed")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Refused("", f"the field {twice[:40]!r} stands twice")
    return made


def _other_kind(text: str) -> bool:
    """Whether a JSON text with numbers that are not whole is of another kind; a broken one is of none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return not isinstance(value, dict) or value.get("pipebench") != KIND


class _NoWhole(Exception):
    """A number of a document that is not whole. text: as it stands there."""

    def __init__(self, text: str) -> None:
        self.text = text


def _no_float(text: str) -> NoReturn:
    raise _NoWhole(text)


_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[^\s"\[\]{},:]+')
"""A text, with what says that it is the name of a field; or a number or word."""


def _place(text: str, number: str) -> str:
    """Where a number stands first in a JSON text: the field before it, line and column."""
    field = ""
    for found in _TOKEN.finditer(text):
        if found[2]:
            field = f"{found[1][:40]!r}, "
        elif found[0] == number:
            line, begins = text.count("\n", 0, found.start()) + 1, text.rfind("\n", 0, found.start())
            return f"{field}line {line}, column {found.start() - begins}"
    return ""


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS + 1:
        raise Refused("", f"a number of {len(text)} digits: at most {MOST_DIGITS} are read")
    return int(text)


class Part:
    """An object of a certificate. Every field is read by its type; `end` refuses those that nobody read."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise Refused(place, "is no object")
        self.value, self.place = value, place
        self._asked: set[str] = set()

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self.place}.{name}" if self.place else name

    def raw(self, name: str) -> Any:
        """A field, whatever it is."""
        self._asked.add(name)
        if name not in self.value:
            raise Refused(self.place, f"lacks the field {name!r}")
        return self.value[name]

    def number(self, name: str, least: int = 0, most: int = MOST) -> int:
        """A whole number."""
        return whole(self.raw(name), self.at(name), least, most)

    def text(self, name: str, among: tuple[str, ...] = ()) -> str:
        """A text of printable letters."""
        return text_of(self.raw(name), self.at(name), among)

    def part(self, name: str) -> "Part":
        """An object."""
        return Part(self.raw(name), self.at(name))

    def parts(self, name: str, most: int = MOST) -> list["Part"]:
        """A list of at most so many objects."""
        listed = list(self._listed(name))
        if len(listed) > most:
            raise Refused(self.at(name), f"are over {most}")
        return [Part(each, place) for place, each in listed]

    def numbers(self, name: str, most: int = MOST) -> list[int]:
        """A list of whole numbers."""
        return [whole(each, place, 0, most) for place, each in self._listed(name)]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        return [text_of(each, place) for place, each in self._listed(name)]

    def rows(self, name: str, *types: type) -> list[Any]:
        """A list of rows; types: of the values of a row, one of int, str and list."""
        found = []
        for place, row in self._listed(name):
            if not isinstance(row, list) or len(row) != len(types):
                raise Refused(place, f"is no list of {len(types)} values")
            for position, (each, wanted) in enumerate(zip(row, types, strict=True)):
                if type(each) is not wanted:
                    raise Refused(f"{place}[{position}]", f"is no {WORDS[wanted]}")
                if isinstance(each, int) and not 0 <= each <= MOST:
                    raise Refused(f"{place}[{position}]", f"is {each}, it must be from 0 to {MOST}")
                if isinstance(each, str):
                    text_of(each, f"{place}[{position}]")
            found.append(row)
        return found

    def end(self) -> None:
        """Raise Refused for a field that no part of the checker knows."""
        for name in self.value:
            if name not in self._asked:
                raise Refused(self.place, f"has the field {name[:40]!r}, which is none of a certificate")

    def _listed(self, name: str) -> Iterator[tuple[str, Any]]:
        found = self.raw(name)
        if not isinstance(found, list):
            raise Refused(self.at(name), "is no list")
        return ((f"{self.at(name)}[{position}]", each) for position, each in enumerate(found))


WORDS: dict[type, str] = {int: "whole number", str: "text", list: "list"}
_PRINTABLE: Callable[[str], Any] = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*").fullmatch


def whole(value: Any, place: str, least: int = 0, most: int = MOST) -> int:
    """The value, if it is a whole number from least to most; else raises Refused."""
    if type(value) is not int:
        raise Refused(place, "is no whole number")
    if not least <= value <= most:
        raise Refused(place, f"is {value}, it must be from {least} to {most}")
    return value


def text_of(value: Any, place: str, among: tuple[str, ...] = ()) -> str:
    """The value, if it is a text of printable letters, one of `among` if that is given; else raises Refused."""
    if not isinstance(value, str) or len(value) > MOST_LETTERS or not _PRINTABLE(value):
        raise Refused(place, f"is no text of at most {MOST_LETTERS} letters")
    if among and value not in among:
        raise Refused(place, f"is {value[:40]!r}, it must be one of {', '.join(among)}")
    return value
