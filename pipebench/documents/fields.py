"""What each field of a value means: the lines of its docstring, for schemas and for the reference."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from pipebench.domain.value import Value

_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.+)", re.DOTALL)
"""One field or several that share a text, and the text."""


def field_texts(kind: type[Value]) -> dict[str, str]:
    """Field to what its class says of it, in a line `field: text` of the docstring; that of a base class too.

    A line that starts with another word continues the entry before it; an entry ends at an empty line.
    """
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Value) and base is not Value:
            texts |= _own_texts(base)
    return texts


def value_types(annotation: Any) -> list[type[Value]]:
    """The classes of values that a type is made of, each once: outer ones first, in the order of their fields."""
    return list(dict.fromkeys(_value_types(annotation, frozenset())))


def described(schema: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type with the text of each field as its description."""
    definitions = schema.get("$defs", {})
    for each in value_types(kind):
        properties = definitions.get(each.__name__, {}).get("properties", {})
        for name, text in field_texts(each).items():
            if name in properties:
                properties[name]["description"] = text
    return schema


def _own_texts(kind: type[Value]) -> dict[str, str]:
    names = {info.name for info in msgspec.structs.fields(kind)}
    texts: dict[str, str] = {}
    about: list[str] = []
    for line in inspect.cleandoc(kind.__doc__ or "").splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry is not None and set(entry[1].split(", ")) <= names:
            about = entry[1].split(", ")
            texts |= dict.fromkeys(about, entry[2])
        elif not line.strip():
            about = []
        else:
            texts |= {name: f"{texts[name]} {line}" for name in about}
    return texts


def _value_types(annotation: Any, outer: frozenset[Any]) -> Iterator[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, Value) and annotation not in outer:
        yield annotation
        for info in msgspec.structs.fields(annotation):
            yield from _value_types(info.type, outer | {annotation})
    for part in get_args(annotation):
        yield from _value_types(part, outer)
