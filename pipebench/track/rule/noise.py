"""What nights differ by when nothing changed: their spread, and how far a night resembles the night before.

Both come from blocks of 30 nights, each about its own level, so that a change of level hardly counts.
"""

import math
import statistics
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import NormalDist

BLOCK, BLOCKS = 30, 4
"""Nights of a block; how many of the last blocks count."""
SIGMA_OF_PAIRS = 1 / (math.sqrt(2) * NormalDist().inv_cdf(5 / 8))
"""Standard deviation over the first quartile of pairwise distances, of a normal distribution."""
SPREAD_ERROR = 0.155
"""Relative standard error of the spread of one block of normal values."""
FAR = 2.0
"""Deviations beyond which a night counts as one so far off, where resemblance is measured."""
MOST_RESEMBLANCE = 0.7


def pair_spread(values: Sequence[float]) -> float:
    """A standard deviation from the distances of all pairs: Qn of Rousseeuw and Croux (J. Am. Stat. Assoc. 1993).

    Nearly half of the values may be wild. It needs no level, and it is as exact as the plain standard deviation of
    82 % of the values; the median absolute deviation is as exact as that of 37 %.
    """
    count = len(values)
    half = count // 2 + 1
    rank = half * (half - 1) // 2
    distances = sorted(abs(one - other) for place, one in enumerate(values) for other in values[place + 1 :])
    small_sample = count / (count + (1.4 if count % 2 else 3.8))
    return SIGMA_OF_PAIRS * small_sample * distances[rank - 1]


def level(values: Collection[float]) -> float:
    """The mean without a sixth of the values at each end."""
    cut = len(values) // 6
    kept = sorted(values)[cut : len(values) - cut]
    return sum(kept) / len(kept)


class Noise:
    """The noise of one series, night by night."""

    def __init__(self) -> None:
        self._block: list[float] = []
        self._spreads: list[float] = []
        self._products: list[tuple[float, float]] = []
        self.spread = 0.0
        self.spread_at_most = 0.0
        self.wander = 1.0

    def add(self, value: float) -> None:
        """One more night.

        spread: the standard deviation of a night, 0 before the first block is whole; spread_at_most: one standard
        error larger. wander: by how much the mean of many nights varies more than that of independent ones.
        """
        self._block.append(value)
        if len(self._block) < BLOCK:
            return
        spread = pair_spread(self._block)
        self._spreads = [*self._spreads, spread][-BLOCKS:]
        self._products = [*self._products, _products(self._block, spread)][-BLOCKS:]
        self._block = []
        self.spread = statistics.median(self._spreads)
        self.spread_at_most = self.spread * (1 + SPREAD_ERROR / math.sqrt(len(self._spreads)))
        self.wander = self._wander()

    def _wander(self) -> float:
        """√((1 + ρ) / (1 - ρ)) of an autoregression, whose correlation ρ is taken one standard error smaller: what
        is not there must not cost power.
        """
        count = BLOCK * len(self._products)
        beside, alone = (sum(each) for each in zip(*self._products, strict=True))
        found = beside / alone if alone else 0.0
        unbiased = found + (1 + 3 * found) / BLOCK  # of a mean that is estimated, block by block
        resemblance = min(MOST_RESEMBLANCE, max(0.0, unbiased - 1 / math.sqrt(count)))
        return math.sqrt((1 + resemblance) / (1 - resemblance))


def _products(block: Sequence[float], spread: float) -> tuple[float, float]:
    """Sums of the products of neighbours, and of squares, of deviations that are not wild."""
    middle = level(block)
    off = [max(-FAR * spread, min(FAR * spread, value - middle)) for value in block]
    return sum(one * other for one, other in pairwise(off)), sum(each * each for each in off)
