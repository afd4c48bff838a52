"""When a change began, and of which shape it is: a step, or a drift that grows each night."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Shape = Literal["step", "drift"]
SHORTEST_BEFORE = 3
"""Nights at the old level, at least: fewer do not say where it was."""
LONGEST = 120
"""Nights that are looked at, at most."""
WILD = 3.0
"""Deviations."""
LIKELY = 5.99
"""The 95 % quantile of χ² with two degrees of freedom, night and height: no worse fits are possible, too."""


@dataclass(frozen=True, slots=True)
class Onset:
    """The best fit to a series that ends in the night that told the change.

    shape: `step` where that is clearly the better fit. began: the first night that is off the old level; earliest,
    latest: where it may lie by either shape (in nine of ten). level: of the last night; slope: what a drift grows
    in a night, 0 for a step; slopes: the least and the most that it may grow (in nine of ten); all as logarithms.
    """

    shape: Shape
    began: int
    earliest: int
    latest: int
    level: float
    slope: float
    slopes: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Fit:
    """squares: by how much the error grows with the square of how far a slope is from the best one."""

    error: float
    began: int
    level: float
    slope: float
    squares: float

    def slopes(self, most: float) -> tuple[float, float]:
        """The least and the most slope whose error is not above `most`."""
        width = math.sqrt((most - self.error) / self.squares)
        return max(0.0, self.slope - width), self.slope + width


def find_onset(values: Sequence[float], spread: float, first: int = 0) -> Onset:
    """The onset of a change for the worse, by least squares over all nights and both shapes.

    values: logarithms, of more than SHORTEST_BEFORE nights, the first of which is called `first`; wild nights
    count as their neighbours. spread: standard deviation of a night.
    """
    offset = max(0, len(values) - LONGEST)
    series = _calm(values[offset:], spread)
    shapes: tuple[Shape, ...] = ("step", "drift")
    fits = {shape: _fits(series, shape) for shape in shapes}
    bests = {shape: min(fits[shape], key=lambda each: each.error) for shape in shapes}
    doubt = LIKELY * spread**2
    shape: Shape = "step" if bests["step"].error + doubt < bests["drift"].error else "drift"
    best = bests[shape]
    most = min(each.error for each in bests.values()) + doubt
    possible = [each.began for name in shapes for each in fits[name] if each.error <= most] or [best.began]
    began, earliest, latest = (first + offset + night for night in (best.began, min(possible), max(possible)))
    if shape == "step":
        return Onset(shape, began, earliest, latest, best.level, 0.0)
    least, largest = zip(*(each.slopes(most) for each in fits["drift"] if each.error <= most), strict=True)
    return Onset(shape, began, earliest, latest, best.level, best.slope, (min(least), max(largest)))


def _calm(series: Sequence[float], spread: float) -> list[float]:
    """A night that is far from the median of itself and its neighbours is taken there."""
    calm = list(series)
    for place in range(1, len(series) - 1):
        middle = statistics.median(series[place - 1 : place + 2])
        if abs(series[place] - middle) > WILD * spread:
            calm[place] = middle
    return calm


def _fits(series: Sequence[float], shape: Shape) -> list[_Fit]:
    """A regression on a step, or on a ramp, for each night in which it may have begun."""
    count, middle = len(series), statistics.fmean(series)
    total = sum((value - middle) ** 2 for value in series)
    found = []
    for began in range(SHORTEST_BEFORE, count):
        ramp = [1.0] * (count - began) if shape == "step" else [float(n) for n in range(1, count - began + 1)]
        mean = sum(ramp) / count
        squares = sum(each**2 for each in ramp) - count * mean**2
        together = (
            sum(one * value for one, value in zip(ramp, series[began:], strict=True)) - count * mean * middle
        )
        slope = max(0.0, together / squares)
        last = middle + slope * (ramp[-1] - mean)
        found.append(_Fit(total - slope * (2 * together - slope * squares), began, last, slope, squares))
    return found
