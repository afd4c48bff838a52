"""Axes: round ticks, and from values to pixels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_EVERY = 9
"""So many values or fewer on an axis are all named."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Values low … high lie on pixels start … end (end may be the smaller one)."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def from_zero(values: Sequence[float], start: float, end: float) -> Axis:
    """From 0 to a round number at or above the largest value."""
    ticks = round_ticks(0.0, max(values, default=1.0) or 1.0)
    return Axis(0.0, ticks[-1], start, end, ticks)


def around(values: Sequence[float], start: float, end: float) -> Axis:
    """From the smallest to the largest value with some room; few values are ticks themselves."""
    distinct = sorted(set(values)) or [0.0]
    low, high = distinct[0], distinct[-1]
    room = 0.06 * (high - low) or 0.5
    if len(distinct) <= MOST_EVERY:
        ticks = tuple(distinct)
    else:
        ticks = tuple(tick for tick in round_ticks(low, high) if low <= tick <= high)
    return Axis(low - room, high + room, start, end, ticks)


def round_ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten, the first at or below `low`, the last at or above `high`."""
    raw = (high - low) / about or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(number * step, 12) for number in range(first, max(last, first + 1) + 1))


def name(tick: float) -> str:
    """A tick in words."""
    return f"{tick:,.0f}" if tick == int(tick) else f"{tick:g}"
