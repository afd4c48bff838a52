"""JSON, TOML and gzip of unknown origin: the size is checked before anything is decoded, a key occurs once."""

import gc
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.limits import (
    LARGEST_FILE_BYTES,
    LARGEST_TOML_BYTES,
    MIB,
    MOST_DIGITS,
    MOST_ELEMENTS,
    MOST_KEY_PARTS,
    MOST_LEVELS,
)

MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
"""What a decoder raises for a text that is none of its format."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def without_mark(data: bytes) -> bytes:
    """The bytes without a byte-order mark of UTF-8, which some editors put in front."""
    return data[len(BYTE_ORDER_MARK) :] if data.startswith(BYTE_ORDER_MARK) else data


def require_size(data: bytes, most: int, source: str) -> None:
    """Raise PipebenchError for more bytes than are read."""
    if len(data) > most:
        limit = f"{most // MIB} MiB" if most % MIB == 0 else f"{most} bytes"
        raise PipebenchError(f"{source}: {len(data)} bytes, at most {limit} are read")


def gunzip(data: bytes, source: str) -> bytes:
    """What a gzip file holds. Raises PipebenchError: it is damaged, or holds more than LARGEST_FILE_BYTES."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(LARGEST_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise PipebenchError(f"{source}: not valid gzip: {error}") from None
    if len(unpacked) > LARGEST_FILE_BYTES:
        raise PipebenchError(f"{source}: it unpacks to more than {LARGEST_FILE_BYTES // MIB} MiB, no more is read")
    return unpacked


_NO_STRUCTURE = bytes(set(range(256)) - set(b",[]{}"))
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_JSON_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def bounded_json(data: bytes, source: str, most_elements: int = MOST_ELEMENTS) -> bytes:
    """A JSON text that may be decoded, its byte-order mark taken off.

    Raises PipebenchError: more elements, or brackets deeper inside brackets, than are read.
    """
    text = without_mark(data)
    structure = text.translate(_AS_SQUARE, _NO_STRUCTURE)
    require_elements(structure, source, most_elements)
    unclosed, deep = _levels(structure)
    if unclosed or deep:  # it may be brackets in strings that are counted
        _, deep = _levels(_JSON_STRINGS.sub(b"", text).translate(_AS_SQUARE, _NO_STRUCTURE))
    if deep:
        raise _depth_error(source)
    return text


def require_elements(text: bytes, source: str, most: int) -> None:
    """Raise PipebenchError for a JSON text of more elements than `most`."""
    found = count_elements(text)
    if found > most:
        raise PipebenchError(f"{source}: about {found} elements, at most {most} are read")


def count_elements(text: bytes) -> int:
    """The elements of a JSON text, about: its commas and opening brackets."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _levels(structure: bytes) -> tuple[bool, bool]:
    """Whether square brackets do not pair, and whether they are nested deeper than MOST_LEVELS.

    Each round takes the innermost pairs out.
    """
    brackets = structure.translate(None, b",")
    if b"[" * (MOST_LEVELS + 1) in brackets:
        return False, True
    for _ in range(MOST_LEVELS + 1):
        before = len(brackets)
        brackets = brackets.replace(b"[]", b"")
        if len(brackets) == before:
            return before > 0, brackets.count(b"[") > MOST_LEVELS
    return False, True


def _depth_error(source: str) -> PipebenchError:
    return PipebenchError(f"{source}: brackets are nested more than {MOST_LEVELS} deep, no deeper is read")


_TOML_STRINGS = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*+(?:""")?'
    rb"|'''(?:[^']|'(?!''))*+(?:''')?"
    rb'|"(?:[^"\\\n]|\\[^\n])*+"?'
    rb"|'[^'\n]*+'?"
    rb"|\#[^\n]*+",
    re.DOTALL,
)
_LONG_KEY = re.compile(rb"(?:\.[ \t]*+[A-Za-z0-9_-]*+[ \t]*+){%d}" % MOST_KEY_PARTS)
_LONG_NUMBER = re.compile(rb"(?<![0-9_])[0-9_]{%d}" % (MOST_DIGITS + 1))


def bounded_toml(data: bytes, source: str) -> bytes:
    """A TOML text that may be decoded, its byte-order mark taken off.

    Raises PipebenchError: more bytes, more parts in a dotted key, more digits in a number, or brackets deeper
    inside brackets, than are read. What TOML's reader makes of these grows with their square.
    """
    require_size(data, LARGEST_TOML_BYTES, source)
    text = without_mark(data)
    bare = _TOML_STRINGS.sub(b"0", text)
    if _LONG_KEY.search(bare):
        raise PipebenchError(f"{source}: a key of more than {MOST_KEY_PARTS} dotted parts, no longer one is read")
    if _LONG_NUMBER.search(bare):
        raise PipebenchError(f"{source}: a number of more than {MOST_DIGITS} digits, no longer one is read")
    if _levels(bare.translate(_AS_SQUARE, _NO_STRUCTURE))[1]:
        raise _depth_error(source)
    return text


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage is looked for while a large value is made, all of which is kept."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


_HIDDEN = re.compile(rb"\\u00(?:22|3[aA])")
"""Quotes and colons that are written as escapes."""


def require_unique_keys(text: bytes, source: str, written: bytes = b"") -> None:
    """Raise PipebenchError with the path of the first key that an object of a valid JSON text has twice.

    written: the text of the decoded value, as msgspec encodes it; an equal text has each key once.
    Keys are counted in the text and in what a decoder, which keeps the last of equal keys, makes of it: every
    `":` ends a key or stands in a string that both have.
    """
    try:
        path = _repeated_key(text, written)
    except MALFORMED as error:  # what a decoder with types has left alone, such as a number above the largest
        raise explanation(error, source, text) from None
    if path is not None:
        raise PipebenchError(f"{source}: {path} occurs twice", "keep one of the two")


def _repeated_key(text: bytes, written: bytes) -> str | None:
    with collector_paused():
        if _HIDDEN.search(text) is None:
            dense = msgspec.json.format(text, indent=-1)
            if dense == written or dense.count(_END_OF_KEY) == _count_kept_keys(dense):
                return None
        return _path_of_repeated(json.loads(text, object_pairs_hook=_object))


_END_OF_KEY = b'":'
_PART_BYTES = MIB


def _count_kept_keys(dense: bytes | msgspec.Raw) -> int:
    """The keys of a text without blanks, equal ones of an object once. Large parts are decoded one by one."""
    first = bytes(memoryview(dense)[:2])
    if len(dense) > _PART_BYTES and first[:1] == b"{":
        fields = msgspec.json.decode(dense, type=dict[str, msgspec.Raw])
        own = msgspec.json.encode(dict.fromkeys(fields)).count(_END_OF_KEY)
        return own + sum(map(_count_kept_keys, fields.values()))
    if len(dense) > _PART_BYTES and first in (b"[{", b"[["):
        return sum(map(_count_kept_keys, msgspec.json.decode(dense, type=list[msgspec.Raw])))
    return msgspec.json.encode(msgspec.json.decode(dense)).count(_END_OF_KEY)


@dataclass(frozen=True, slots=True)
class _RepeatedKey:
    key: str


def _object(pairs: list[tuple[str, Any]]) -> "dict[str, Any] | _RepeatedKey":
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    return _RepeatedKey(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]


def _path_of_repeated(value: Any, path: str = "$") -> str | None:
    if isinstance(value, _RepeatedKey):
        return f"{path}.{value.key}"
    inside: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, dict):
        inside = ((f"{path}.{key}", each) for key, each in value.items())
    elif isinstance(value, list):
        inside = ((f"{path}[{position}]", each) for position, each in enumerate(value))
    return next((found for at, each in inside if (found := _path_of_repeated(each, at)) is not None), None)


def no_utf8(source: str, error: UnicodeDecodeError) -> PipebenchError:
    """That a file holds no text, or one in another encoding."""
    return PipebenchError(f"{source}: not text: byte {error.start} is not UTF-8", "save it as UTF-8")


def explanation(error: Exception, source: str, text: bytes, root: str = "$") -> PipebenchError:
    """What was wrong with a JSON text, with the path in the document.

    error: what msgspec raised. root: the path of what was decoded in the whole document.
    """
    if isinstance(error, RecursionError):
        return _depth_error(source)
    if not isinstance(error, msgspec.ValidationError):
        try:
            text.decode()
        except UnicodeDecodeError as wrong:
            return no_utf8(source, wrong)
        cut = f": the file ends after {len(text)} bytes" if "truncated" in str(error) else ""
        return PipebenchError(f"{source}: not valid JSON: {error}{cut}")
    what, path = problem_and_path(error)
    return PipebenchError(f"{source}: at {path.replace('$', root, 1)}: {what}")


def problem_and_path(error: msgspec.ValidationError) -> tuple[str, str]:
    """What is wrong, and the path of the value: $.costs[0].operators[3].forward_s[0]; $ where it is the whole."""
    message, cause = str(error), error.__cause__
    what, _, path = message.rpartition(" - at ")
    if not what:
        what, path = message, "$"
    path = path.strip("`")
    if isinstance(cause, InvalidValue) and cause.field:
        path = f"{path}.{cause.field}"
    if "out of range" in what:
        what = f"{what}: integers of at most {MOST_DIGITS} digits are read, other numbers up to 1.8e308"
    return what, path
