"""Wilcoxon's signed-rank test with its exact null distribution, and Holm's correction.

F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1(6), 1945. Zeros are ranked and
then left out (J. W. Pratt, "Remarks on zeros and ties in the Wilcoxon signed rank procedures", JASA 54, 1959);
equal sizes share the mean of their ranks. The null distribution is that of these very ranks, so ties and zeros
need no approximation. S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 1979.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

FEWEST = 6
"""With five differences the smallest two-sided p is 2 / 2^5 = 0.0625: nothing could be found at 5 %."""
DIGITS = 12


def signed_rank_p(differences: Sequence[float]) -> float:
    """The exact two-sided p of differences that are as likely up as down; infinite ones rank highest.

    1.0 when all are zero. Sizes that agree in 12 decimals are equal.
    """
    doubled = _doubled_ranks(differences)
    up = sum(rank for rank, difference in zip(doubled, differences, strict=True) if difference > 0)
    down = sum(rank for rank, difference in zip(doubled, differences, strict=True) if difference < 0)
    ranks = [rank for rank, difference in zip(doubled, differences, strict=True) if difference != 0]
    chances = _chances(ranks)
    return min(1.0, 2.0 * float(chances[: min(up, down) + 1].sum()))


def _doubled_ranks(differences: Sequence[float]) -> list[int]:
    """Twice the rank of each size, so that the mean of tied ranks is whole."""
    sizes = [round(abs(difference), DIGITS) for difference in differences]
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    ranks = [0] * len(sizes)
    passed = 0
    for _, tied in groupby(order, key=sizes.__getitem__):
        members = list(tied)
        for member in members:
            ranks[member] = 2 * passed + len(members) + 1
        passed += len(members)
    return ranks


def _chances(ranks: Sequence[int]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Chance of each sum of ranks when each counts or not with chance 1/2; only positive terms are added."""
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[: len(chances) - rank]
        chances = 0.5 * (chances + shifted)
    return chances


def holm(chances: Sequence[float]) -> list[float]:
    """p values corrected for being a family, in the order given: below alpha where Holm's procedure rejects."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    corrected = [0.0] * len(chances)
    largest = 0.0
    for place, position in enumerate(order):
        largest = max(largest, min(1.0, (len(chances) - place) * chances[position]))
        corrected[position] = largest
    return corrected
