"""Which kind of JSON a file holds, told by the names of its fields and where they stand, never by words in it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from pipebench.documents.decoding import MALFORMED, without_mark

JsonForm = Literal["native", "piper", "tarnawski", "layers"]
_FIELDS: tuple[tuple[JsonForm, frozenset[str]], ...] = (
    ("native", frozenset({"pipebench", "rows"})),
    ("piper", frozenset({"maxDevices", "maxMemoryPerDevice", "mbsInBatch", "maxBatchSize", "nodes.TMPCs"})),
    ("tarnawski", frozenset({"maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes.fpgaLatency"})),
    ("layers", frozenset({"layers"})),
)
"""Fields that tell a form: those of the whole, and after a dot those of the objects in a list of the whole."""
_START_BYTES = 2**16
_BLANK = re.compile(rb"\s*")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}:,]', re.DOTALL)


def starts_object(data: bytes) -> bool:
    """Whether a text is a JSON object by its first letter; TOML may start as a JSON list does."""
    return without_mark(data[:_START_BYTES]).lstrip()[:1] == b"{"


def json_form(data: bytes) -> JsonForm | None:
    """The form of a JSON text, None for what is none by its first letter.

    A list is a table of layers. An object is what its fields tell, else a document of this project.
    """
    text = without_mark(data)
    blank = _BLANK.match(text)
    first = blank.end() if blank else 0
    if text[first : first + 1] == b"[":
        return "layers"
    if text[first : first + 1] != b"{":
        return None
    return _by_fields(text[first : first + _START_BYTES]) or _by_all_fields(text) or "native"


@lru_cache(maxsize=4)
def _by_fields(start: bytes) -> JsonForm | None:
    found = set(_fields(start))
    return next((form for form, fields in _FIELDS if found & fields), None)


def _by_all_fields(text: bytes) -> JsonForm | None:
    """As `_by_fields`, for a text whose start tells nothing; None where it is no whole object."""
    if len(text) <= _START_BYTES:
        return None
    try:
        found = set(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    except MALFORMED:
        return None
    return next((form for form, fields in _FIELDS if found & fields), None)


def _fields(start: bytes) -> Iterator[str]:
    """Fields of the whole, and `list.name` of those of objects in its lists. The text may end anywhere."""
    depth, outer, last = 0, "", b""
    lists: list[bool] = []
    for token in _TOKEN.findall(start):
        if token in (b"{", b"["):
            depth += 1
            lists.append(token == b"[")
        elif token in (b"}", b"]"):
            depth -= 1
            lists = lists[:-1]
        elif token == b":":
            name = last.decode(errors="replace")
            if depth == 1:
                outer = name
                yield name
            elif depth == 3 and lists == [False, True, False]:
                yield f"{outer}.{name}"
        elif token != b",":
            last = token[1:-1]
