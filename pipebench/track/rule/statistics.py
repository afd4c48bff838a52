"""Estimates that a few wild values do not move, the test of interleaved pairs, and dates of level changes."""

import math
import random
import statistics
from bisect import insort
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from pipebench.bench.standings.statistics import FEWEST, holm, signed_rank_p
from pipebench.domain.value import Value

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


TOLERANCE = 0.05
SEEN = 0.10
"""A change that a comparison has to tell, or it is inconclusive."""
CHANCE, TEST = 0.01, 0.05
"""Of the interval to miss the median; of the signed-rank test."""

FEWEST_FOR_INTERVAL = 8
"""2 / 2 ** 8 is below CHANCE."""

Answer = Literal["same", "slower", "faster", "too few pairs"]


class Pairs(Value, frozen=True, kw_only=True):
    """The answer, and what it rests on. change, low and high are relative, after / before - 1; low and high are
    None where there are too few pairs for an interval. p: of the signed-rank test, corrected for the number of
    comparisons.
    """

    answer: Answer
    count: int
    change: float = 0.0
    low: float | None = None
    high: float | None = None
    p: float = 1.0

    @property
    def excludes_a_change(self) -> bool:
        """Whether the interval leaves no room for searches that take SEEN longer, or they are known to."""
        return self.answer == "slower" or (self.high is not None and self.high < SEEN)

    @property
    def enough(self) -> int | None:
        """About how many pairs would exclude it if nothing changed: intervals shrink by the root of their number.

        None where that is known already, or where nothing was timed.
        """
        if self.excludes_a_change or not self.count:
            return None
        if self.low is None or self.high is None:
            return FEWEST_FOR_INTERVAL
        wide = (math.log1p(self.high) - math.log1p(self.low)) / 2
        return max(self.count + 1, math.ceil(self.count * (wide / math.log1p(SEEN)) ** 2 - 1e-9))


def compare_pairs(families: Sequence[Sequence[float]]) -> list[Pairs]:
    """One answer for each series of log(after / before), the tests corrected for being as many (Holm)."""
    chances = [signed_rank_p(series) if len(series) >= FEWEST else 1.0 for series in families]
    return [_answer(series, p) for series, p in zip(families, holm(chances), strict=True)]


def _answer(series: Sequence[float], p: float) -> Pairs:
    if not series:
        return Pairs(answer="too few pairs", count=0)
    low, high = median_interval(series, CHANCE)
    change = math.expm1(statistics.median(series))
    if math.isinf(low):
        return Pairs(answer="too few pairs", count=len(series), change=change, p=p)
    answer: Answer = "same"
    if p <= TEST and low > math.log1p(TOLERANCE):
        answer = "slower"
    elif p <= TEST and high < -math.log1p(TOLERANCE):
        answer = "faster"
    return Pairs(answer=answer, count=len(series), change=change, low=math.expm1(low), high=math.expm1(high), p=p)


SHORTEST = 3
PENALTY = 2.5
"""Of one change, in deviations times the logarithm of the number of nights: noise alone gives a change in less
than one of a hundred series (measured, tests/track/test_steps.py)."""
LONGEST = 120
"""More nights than this are not looked at: the fit takes time that grows with their square."""


def changes(values: Sequence[float]) -> list[int]:
    """The positions at which a new level begins, the first segment's apart; none in a series too short to say."""
    offset = max(0, len(values) - LONGEST)
    series = values[offset:]
    count = len(series)
    if count < 2 * SHORTEST:
        return []
    penalty = PENALTY * max(_noise(series), 1e-6) * math.log(count)
    best, last = [-penalty] + [math.inf] * count, [0] * (count + 1)
    for start in range(count - SHORTEST + 1):
        if math.isinf(best[start]):
            continue
        for length, cost in enumerate(_costs(series[start:]), start=1):
            total = best[start] + penalty + cost
            if length >= SHORTEST and total < best[start + length]:
                best[start + length], last[start + length] = total, start
    found, end = [], count
    while (start := last[end]) > 0:
        found.append(offset + start)
        end = start
    return found[::-1]


def date_of(values: Sequence[float], since: int, told: int, up: bool) -> int:
    """The night in which a change began that the rule saw begin at `since` and told at `told`.

    The fitted change in the same direction that is nearest and at most a window of nights away; `since` where the
    fit has none, as in the first nights after.
    """
    fitted = changes(values)
    bounds = [0, *fitted, len(values)]
    near = []
    for number, position in enumerate(fitted, start=1):
        before = statistics.median(values[bounds[number - 1] : position])
        after = statistics.median(values[position : bounds[number + 1]])
        if (after > before) == up and since - 2 * SHORTEST <= position <= told:
            near.append(position)
    return min(near, key=lambda position: abs(position - since), default=since)


def _costs(series: Sequence[float]) -> list[float]:
    """Sum of absolute deviations from the median of the first 1, 2, … values."""
    ordered: list[float] = []
    costs, total = [], 0.0
    for count, value in enumerate(series, start=1):
        middle = ordered[(count - 1) // 2] if ordered else value
        insort(ordered, value)
        # the median moves between neighbours: the sum changes by the new value's distance to where it was
        total += abs(value - middle)
        if count % 2 == 0:
            costs.append(total)
            continue
        now = ordered[count // 2]
        if count > 1 and now != middle:
            total -= abs(now - middle)
        costs.append(total)
    return costs


def _noise(series: Sequence[float]) -> float:
    """Standard deviation of one value, from the differences of neighbours: changes of level hardly count."""
    differences = [abs(after - before) for before, after in pairwise(series)]
    return SIGMA_OF_MAD * statistics.median(differences) / math.sqrt(2)
