"""The base of all values: frozen, unknown fields refused, hashed and compared by content."""

import hashlib
import math
from collections.abc import Iterable
from typing import Any

import msgspec

from pipebench.domain.errors import InvalidValue

_ENCODER = msgspec.json.Encoder(order="sorted")


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A frozen record. Equal content is equal, whatever the order of its mappings."""

    def __hash__(self) -> int:
        return hash(_canonical(self))


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value, in hex: the identity of problems, plans and schedules."""
    return hashlib.sha256(_canonical(value)).hexdigest()


def _canonical(value: Any) -> bytes:
    return _ENCODER.encode(msgspec.to_builtins(value, str_keys=True))


def require(condition: bool, message: str) -> None:
    """Raise InvalidValue(message) unless the condition holds."""
    if not condition:
        raise InvalidValue(message)


def require_cost(name: str, numbers: Iterable[float]) -> None:
    """Costs are finite and not negative; the message names the first one that is not."""
    for position, number in enumerate(numbers):
        if not math.isfinite(number) or number < 0:
            raise InvalidValue(f"{name}[{position}] is {number}: a cost must be finite and not negative")


def require_unique(what: str, names: Iterable[str]) -> None:
    """Names in one list differ; the message gives the first one that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidValue(f"{what} {name!r} occurs twice")
        seen.add(name)
