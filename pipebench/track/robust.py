"""Estimates that a few wild values do not move, and how well they are known."""

import math
import random
import statistics
from collections.abc import Sequence

SIGMA_OF_MAD = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""
RESAMPLES = 400


def spread(values: Sequence[float]) -> float:
    """A standard deviation from the median absolute deviation."""
    middle = statistics.median(values)
    return SIGMA_OF_MAD * statistics.median(abs(value - middle) for value in values)


def half_width(values: Sequence[float], seed: int = 0) -> float:
    """Half of the 95 % bootstrap interval of the median; infinite for less than three values."""
    if len(values) < 3:
        return math.inf
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = int(0.025 * RESAMPLES)
    return (medians[-1 - tail] - medians[tail]) / 2


def median_interval(values: Sequence[float], chance: float = 0.01) -> tuple[float, float]:
    """An interval of order statistics that misses the median of a distribution with at most that chance.

    Whatever the distribution is: the number of values below its median is binomial (1/2). All of the line where
    there are too few values to say so.
    """
    count, tail, rank = len(values), 0.0, 0
    while True:
        tail += 2.0 * math.comb(count, rank) / 2.0**count
        if tail > chance:
            break
        rank += 1
    if rank == 0:
        return -math.inf, math.inf
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]
