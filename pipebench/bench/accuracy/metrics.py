"""Figures of a comparison of predicted with measured: errors, regret, coverage."""

import math
from collections.abc import Sequence

from pipebench.domain.value import Value


class Errors(Value, frozen=True, kw_only=True):
    """Relative errors, (predicted - measured) / measured.

    count: of runs. mean_absolute, mean_signed, median_absolute, largest_absolute: as shares.
    """

    count: int
    mean_absolute: float
    mean_signed: float
    median_absolute: float
    largest_absolute: float


def errors_of(pairs: Sequence[tuple[float, float]]) -> Errors | None:
    """The errors of (predicted, measured), None for no pairs. Measured values are above 0."""
    if not pairs:
        return None
    signed = [(predicted - measured) / measured for predicted, measured in pairs]
    absolute = sorted(map(abs, signed))
    middle, odd = divmod(len(absolute), 2)
    return Errors(
        count=len(pairs),
        mean_absolute=math.fsum(absolute) / len(pairs),
        mean_signed=math.fsum(signed) / len(pairs),
        median_absolute=absolute[middle] if odd else (absolute[middle - 1] + absolute[middle]) / 2,
        largest_absolute=absolute[-1],
    )


def regret(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """How much longer the choice of the least predicted takes than the best: 0 where it is the best.

    Of choices that are predicted alike, the slowest as measured counts.
    """
    least = min(predicted)
    chosen = max(m for p, m in zip(predicted, measured, strict=True) if p == least)
    return chosen / min(measured) - 1


def coverage(rows: Sequence[tuple[float | None, float, float | None]]) -> tuple[int, float | None]:
    """Of (low, measured, high): how many have an interval, and the share of them that holds the measured value."""
    held = [low <= value <= high for low, value, high in rows if low is not None and high is not None]
    return len(held), sum(held) / len(held) if held else None


def mean(values: Sequence[float]) -> float | None:
    """The mean, None of nothing."""
    return math.fsum(values) / len(values) if values else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that is at or above `share` of all; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
