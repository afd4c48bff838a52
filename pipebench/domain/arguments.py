"""The arguments of a function that people call: converted to what its annotations say, or refused in one line."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from pipebench.domain.errors import InvalidValue, unknown

P = ParamSpec("P")
R = TypeVar("R")


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """The function with its arguments converted: "4" is taken where a number belongs, any iterable as a sequence.

    Calls raise PipebenchError for an argument of another type, or a word that is none of those listed. A keyword
    that a `**` parameter does not declare goes through: the function says what is wrong with it.
    """
    shape = signature(function)
    rest = next((each.name for each in shape.parameters.values() if each.kind is Parameter.VAR_KEYWORD), "")

    @cache
    def hints() -> Mapping[str, Any]:
        found = get_type_hints(function)
        if rest:
            (declared,) = get_args(found[rest])
            found |= get_type_hints(declared)
        return found

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = shape.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            if name == rest:
                given.arguments[name] = {
                    key: converted(key, each, hints()[key]) if key in hints() else each
                    for key, each in value.items()
                }
            else:
                given.arguments[name] = converted(name, value, hints()[name])
        return function(*given.args, **given.kwargs)

    return call


def converted(name: str, value: Any, kind: Any) -> Any:
    """The value as what `kind` says. Raises PipebenchError where it is none."""
    choices = _choices(kind)
    if choices and value is not None:
        if value not in choices:
            raise unknown(name.replace("_", " "), str(value), choices)
        return value
    if Path in get_args(kind):
        if not isinstance(value, kind):
            raise InvalidValue(f"{name} is {value!r}: a path is a text or a Path")
        return value
    try:
        return msgspec.convert(_plain(value), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidValue(f"{name} is {value!r}: {str(error).replace('null', 'None')}") from None


def _plain(value: Any) -> Any:
    """A path as its text, a number of numpy as one of Python, what has elements as a list of them."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [_plain(each) for each in value]
    return value.item() if hasattr(value, "item") else value


def _choices(kind: Any) -> tuple[str, ...]:
    for each in (kind, *get_args(kind)):
        if get_origin(each) is Literal:
            return get_args(each)
    return ()
