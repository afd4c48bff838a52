"""Are two things equally fast? The test for interleaved pairs: A/A every night, two revisions on demand.

Slower or faster is said when an interval for the median of the logarithms of the pairs' ratios lies outside the
tolerance altogether and the signed-rank test agrees. The interval is one of order statistics: it holds for any
distribution of the noise.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from pipebench.bench.standings.signed_rank import FEWEST, holm, signed_rank_p
from pipebench.domain.value import Value
from pipebench.track.robust import median_interval

TOLERANCE = 0.05
CHANCE, TEST = 0.01, 0.05
"""Of the interval to miss the median; of the signed-rank test."""

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
