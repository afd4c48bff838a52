"""JSON made wrong where it is still JSON: values of other types and sizes, keys doubled, missing and extra."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

DEEPEST = 100_000
"""Levels of the deepest nest that is tried."""
MOST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Token:
    """A text that stands in the document as it is."""

    text: str


@dataclass(slots=True)
class Pairs:
    """An object: its keys need not differ."""

    items: list[tuple[str, Any]]


NUMBERS = (
    "0",
    "-0",
    "-1",
    "1",
    "0.5",
    "1e-320",
    "1e15",
    "-1e15",
    "1e308",
    "-1e308",
    "1e999",
    "NaN",
    "Infinity",
    "2147483648",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551616",
    "-18446744073709551616",
    "9" * 400,
    "9" * 5000,
    "1_0",
    "٣",
)
TEXTS = (
    "",
    " ",
    "٣",
    "1_0",
    "nan",
    "-1",
    "1e400",
    "1" * 5000,
    "A" * 2000,
    "\x00",
    "\x1b[2J\x1b]0;title\x07",
    "\n",
    "../../etc/passwd",
    "[a]",
    "[red]",
    "é",
    "\u202e",
    "layers",
)
OTHERS = ("null", "true", "false", "[]", "{}", "[[]]", '{"":0}', '"\\ud800"', "[null]", '[1,"a",null]')


def odd_value(draw: random.Random) -> Token:
    """A value that hardly any place expects."""
    kind = draw.randrange(8)
    if kind < 4:
        return Token(draw.choice(NUMBERS))
    if kind < 6:
        return Token(json.dumps(draw.choice(TEXTS)))
    if kind == 6 and draw.random() < 0.2:
        depth = draw.choice((60, 1100, DEEPEST))
        return Token("[" * depth + "]" * depth if draw.random() < 0.5 else '{"a":' * depth + "1" + "}" * depth)
    return Token(draw.choice(OTHERS))


def mutate_json(data: bytes, draw: random.Random) -> bytes:
    """The document after one to MOST_STEPS changes; what is no JSON stays as it is."""
    try:
        tree: Any = [json.loads(data, object_pairs_hook=lambda pairs: Pairs(list(pairs)))]
    except (ValueError, RecursionError):
        return data
    for _ in range(draw.randint(1, MOST_STEPS)):
        holder, at = draw.choice(list(_places(tree)))
        draw.choice(CHANGES)(holder, at, draw)
    return ",".join(map(_text, tree)).encode("utf-8", "surrogatepass")


Holder = list[Any] | Pairs


def _places(holder: Holder) -> Iterator[tuple[Holder, int]]:
    """Every value, as the list or object that holds it and its position there."""
    values = holder if isinstance(holder, list) else [value for _, value in holder.items]
    for at, value in enumerate(values):
        yield holder, at
        if isinstance(value, list | Pairs):
            yield from _places(value)


def _get(holder: Holder, at: int) -> Any:
    return holder[at] if isinstance(holder, list) else holder.items[at][1]


def _set(holder: Holder, at: int, value: Any) -> None:
    if isinstance(holder, list):
        holder[at] = value
    else:
        holder.items[at] = (holder.items[at][0], value)


def _odd(holder: Holder, at: int, draw: random.Random) -> None:
    _set(holder, at, odd_value(draw))


def _nudge(holder: Holder, at: int, draw: random.Random) -> None:
    """A number a little or much beside what it was, or as text."""
    value = _get(holder, at)
    if isinstance(value, bool) or not isinstance(value, int | float):
        _odd(holder, at, draw)
        return
    ways: tuple[Any, ...] = (-value, value + 1, value - 1, value * 1000, value + 0.5, str(value), [value], 0)
    _set(holder, at, draw.choice(ways))


def _tweak(holder: Holder, at: int, draw: random.Random) -> None:
    """Another value of the same type: a number nearby or a usual one, the other truth, a text beside it."""
    value = _get(holder, at)
    if isinstance(value, bool):
        _set(holder, at, not value)
    elif isinstance(value, int):
        _set(holder, at, draw.choice((0, 1, 2, 3, 7, value + 1, value - 1, value * 2, value * 10**6)))
    elif isinstance(value, float):
        _set(holder, at, draw.choice((0.0, 1.0, value * 2, value / 3, value * 1e6, value / 1e6, 1e5, 5e-324)))
    elif isinstance(value, str):
        listed = holder if isinstance(holder, list) else [each for _, each in holder.items]
        texts = [each for each in listed if isinstance(each, str)]
        _set(holder, at, draw.choice([*texts, value[::-1], value + "x", value[1:], value.upper(), value * 2]))
    else:
        _permute(holder, at, draw)


def _drop(holder: Holder, at: int, draw: random.Random) -> None:
    listed = holder if isinstance(holder, list) else holder.items
    if at < len(listed):
        del listed[at]
    if not listed:
        listed.append(odd_value(draw) if isinstance(holder, list) else ("x", odd_value(draw)))  # type: ignore[arg-type]


def _double(holder: Holder, at: int, draw: random.Random) -> None:
    listed: list[Any] = holder if isinstance(holder, list) else holder.items
    listed.insert(draw.randint(0, len(listed)), listed[at])


def _rename(holder: Holder, at: int, draw: random.Random) -> None:
    if isinstance(holder, list):
        _odd(holder, at, draw)
        return
    others = [key for key, _ in holder.items] + list(TEXTS)
    holder.items[at] = (draw.choice(others), holder.items[at][1])


def _extra(holder: Holder, at: int, draw: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(at, odd_value(draw))
    else:
        holder.items.insert(at, (draw.choice(TEXTS), odd_value(draw)))


def _permute(holder: Holder, at: int, draw: random.Random) -> None:
    value = _get(holder, at)
    draw.shuffle(value if isinstance(value, list) else holder if isinstance(holder, list) else holder.items)


def _swap(holder: Holder, at: int, draw: random.Random) -> None:
    """Two values of one list or object change places."""
    size = len(holder if isinstance(holder, list) else holder.items)
    other = draw.randrange(size)
    mine, theirs = _get(holder, at), _get(holder, other)
    _set(holder, at, theirs)
    _set(holder, other, mine)


CHANGES: tuple[Callable[[Holder, int, random.Random], None], ...] = (
    *(6 * (_tweak,)),
    _odd,
    _odd,
    _nudge,
    _nudge,
    _drop,
    _double,
    _rename,
    _extra,
    _permute,
    _swap,
)


def _text(value: Any) -> str:
    if isinstance(value, Token):
        return value.text
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{_text(each)}" for key, each in value.items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value)
