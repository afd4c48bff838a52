"""TOML and JSON as typed values: every unknown key and every wrong type is an error that names file and key.

And the text of a table of lines.
"""

import re
from typing import Any, Literal, TypeVar, get_args

import msgspec

from pipebench.documents.decoding import (
    MALFORMED,
    bounded_json,
    bounded_toml,
    collector_paused,
    explanation,
    no_utf8,
    problem_and_path,
    require_size,
    require_unique_keys,
)
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.limits import LARGEST_TABLE_BYTES, MOST_TABLE_LINES

T = TypeVar("T")
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def parse_toml(data: bytes, kind: type[T], source: str) -> T:
    """The content of a TOML file as a msgspec Struct that forbids unknown fields.

    Raises PipebenchError: not TOML, an unknown key (with the nearest one), a missing key, a wrong type or value.
    """
    try:
        return msgspec.toml.decode(bounded_toml(data, source), type=kind)
    except PipebenchError:
        raise
    except msgspec.ValidationError as error:
        raise _explanation(error, kind, source) from None
    except MALFORMED as error:
        raise PipebenchError(f"{source}: not valid TOML: {error}") from None


def parse_json(data: bytes, kind: type[T], source: str) -> T:
    """The content of a JSON text as a msgspec Struct that forbids unknown fields.

    source: the file. Raises PipebenchError as `parse_toml`; a text that was cut short is told with its length.
    """
    text = bounded_json(data, source)
    value = parse_json_part(text, kind, source)
    require_unique_keys(text, source)
    return value


def parse_json_part(text: bytes | msgspec.Raw, kind: type[T], source: str) -> T:
    """As `parse_json`, for a part of a text that was parsed. source: the file, and the place inside it."""
    try:
        with collector_paused():
            return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise _explanation(error, kind, source) from None
    except MALFORMED as error:
        raise explanation(error, source, bytes(text)) from None


def table_text(data: bytes, source: str, errors: Literal["strict", "replace"] = "strict") -> str:
    """The text of a table of lines, its byte-order mark taken off; lines end with a newline.

    errors: whether bytes that are no UTF-8 are refused or replaced.
    Raises PipebenchError: more bytes or lines than are read, or no UTF-8.
    """
    require_size(data, LARGEST_TABLE_BYTES, source)
    try:
        text = data.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise no_utf8(source, error) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.count("\n")
    if lines > MOST_TABLE_LINES:
        raise PipebenchError(f"{source}: {lines} lines, at most {MOST_TABLE_LINES} are read")
    return text


def _explanation(error: msgspec.ValidationError, kind: Any, source: str) -> PipebenchError:
    unknown = _UNKNOWN_KEY.fullmatch(str(error))
    if unknown is not None:
        place = unknown[2] or ""
        valid = _keys_at(kind, place)
        return PipebenchError(
            f"{source}: unknown key {f'{place}.{unknown[1]}'.lstrip('.')!r}", nearest(unknown[1], valid)
        )
    what, path = problem_and_path(error)
    key = path.removeprefix("$").lstrip(".")
    return PipebenchError(f"{source}: {f'{key}: {what}' if key else what}")


def _keys_at(kind: Any, place: str) -> list[str]:
    """The keys of the table at a path such as `.levels[0]`."""
    for name, _ in _STEP.findall(place):
        kind = _inside(kind, name)
    return [field.encode_name for field in msgspec.structs.fields(kind)] if _is_struct(kind) else []


def _inside(kind: Any, name: str) -> Any:
    if name and _is_struct(kind):
        return _table_type(next(f.type for f in msgspec.structs.fields(kind) if f.encode_name == name))
    return _table_type(kind)


def _table_type(kind: Any) -> Any:
    """The struct inside tuple[X, ...], dict[str, X] or X | None; `kind` itself where there is none."""
    if _is_struct(kind):
        return kind
    return next((found for found in map(_table_type, get_args(kind)) if _is_struct(found)), kind)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
