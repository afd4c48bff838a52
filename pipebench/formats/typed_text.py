"""TOML and JSON as typed values: every unknown key and every wrong type is an error that names file and key."""

import re
from typing import Any, TypeVar, get_args

import msgspec

from pipebench.domain.errors import PipebenchError, nearest

T = TypeVar("T")
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def parse_toml(data: bytes, kind: type[T], source: str) -> T:
    """The content of a TOML file as a msgspec Struct that forbids unknown fields.

    Raises PipebenchError: not TOML, an unknown key (with the nearest one), a missing key, a wrong type or value.
    """
    try:
        return msgspec.toml.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _explanation(str(error), kind, source) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise PipebenchError(f"{source}: not valid TOML: {error}") from None


def parse_json(data: bytes, kind: type[T], source: str) -> T:
    """The content of a JSON text as a msgspec Struct that forbids unknown fields.

    source: the file, and the place inside it where the text is only a part of one. Raises PipebenchError as
    `parse_toml`; a text that was cut short is told with its length.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _explanation(str(error), kind, source) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        cut = f": the file ends after {len(data)} bytes" if "truncated" in str(error) else ""
        raise PipebenchError(f"{source}: not valid JSON: {error}{cut}") from None


def _explanation(message: str, kind: Any, source: str) -> PipebenchError:
    unknown = _UNKNOWN_KEY.fullmatch(message)
    if unknown is not None:
        place = unknown[2] or ""
        valid = _keys_at(kind, place)
        return PipebenchError(
            f"{source}: unknown key {f'{place}.{unknown[1]}'.lstrip('.')!r}", nearest(unknown[1], valid)
        )
    what, _, place = message.partition(" - at `$")
    key = place.rstrip("`").lstrip(".")
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
