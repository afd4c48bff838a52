"""The base of all values: frozen, unknown fields refused, hashed and compared by content."""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from pipebench.domain.errors import InvalidValue
from pipebench.domain.limits import MOST_BYTES, MOST_COUNT, MOST_LETTERS, MOST_RATE, MOST_SECONDS

_ENCODER = msgspec.json.Encoder(order="sorted")


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A frozen record. Equal content is equal, whatever the order of its mappings."""

    def __hash__(self) -> int:
        return hash(_canonical(self._content()))

    def _content(self) -> Any:
        return msgspec.to_builtins(self, str_keys=True)

    def identity_content(self) -> Any:
        """What the identity of the value covers, as builtins: all of it, unless a class says less.

        A class whose fields have changed says its content as it was before the change wherever the new fields
        are at their defaults, so that what older stores hold keeps its name.
        """
        return self._content()


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value, in hex: the identity of problems, plans and schedules."""
    content = value.identity_content() if isinstance(value, Value) else msgspec.to_builtins(value, str_keys=True)
    return hashlib.sha256(_canonical(content)).hexdigest()


def _canonical(content: Any) -> bytes:
    return _ENCODER.encode(_plain(content))


def _plain(value: Any) -> Any:
    """One writing for equal numbers: 1.0 as 1, -0.0 as 0, as `==` takes them."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def require(condition: bool, message: str, field: str = "") -> None:
    """Raise InvalidValue(message) unless the condition holds. field: the field that breaks it."""
    if not condition:
        raise InvalidValue(message, field=field)


def require_seconds(owner: str, field: str, numbers: Iterable[float]) -> None:
    """Seconds are not negative and at most 10^6; the message names the first one that is not.

    owner: whose figures they are, such as an operator. field: the field that lists them.
    """
    for position, number in enumerate(numbers):
        if not 0 <= number <= MOST_SECONDS:
            at = f"{field}[{position}]"
            raise InvalidValue(f"{owner}: {at} is {short(number)}: {_range(MOST_SECONDS)}", field=at)


def require_bytes(owner: str, **numbers: float) -> None:
    """Bytes are not negative and at most 2^50; the message names the first field that is not."""
    for field, number in numbers.items():
        if not 0 <= number <= MOST_BYTES:
            raise InvalidValue(f"{owner}: {field} is {short(number)}: {_range(MOST_BYTES)}", field=field)


def require_rate(name: str, number: float) -> None:
    """A rate in bytes/s or FLOP/s: from 1 to 2^63."""
    if not 1 <= number <= MOST_RATE:
        raise InvalidValue(f"{name} is {short(number)}, it must be between 1 and 2^63")


def require_count(name: str, number: int) -> None:
    """A count: from 1 to 2^31."""
    if not 1 <= number <= MOST_COUNT:
        raise InvalidValue(f"{name} is {short(number)}, it must be between 1 and 2^31")


def short(number: float) -> str:
    """The number as it is written, the middle left out where it has over 40 digits."""
    text = str(number)
    return text if len(text) <= 40 else f"{text[:20]}…{text[-8:]} ({len(text)} digits)"


def _range(most: float) -> str:
    return f"it must be finite, not negative and at most {most:g}"


def require_name(what: str, name: str) -> None:
    """Names are not empty and have no control characters (they are printed in tables and errors)."""
    require(name != "", f"{what} has an empty name")
    require(
        len(name) <= MOST_LETTERS and name.isprintable(),
        f"the name of {what} has control characters or is over {MOST_LETTERS} letters: {name[:40]!r}",
    )


def require_unique(what: str, names: Iterable[str]) -> None:
    """Names in one list differ; the message gives the first one that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidValue(f"{what} {name!r} occurs twice")
        seen.add(name)
