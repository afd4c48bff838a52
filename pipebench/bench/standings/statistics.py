"""The statistics of standings: means with failures, performance profiles, Kendall's tau-b,
Wilcoxon's signed-rank test.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

PAR = 2.0
"""Penalised average runtime, PAR2: what is not solved counts twice the limit."""
TRIAL_LIMIT_S = 300.0
SEARCH_SHIFT_S = 0.010


def shifted_geometric_mean(values: Iterable[float], shift: float = 0.0) -> float | None:
    """The shifted geometric mean, None of no values. Raises ValueError where value + shift is not above zero."""
    numbers = list(values)
    if not numbers:
        return None
    if min(numbers) + shift <= 0:
        raise ValueError(f"a geometric mean needs numbers above zero, found {min(numbers)} with shift {shift}")
    return math.exp(math.fsum(math.log(number + shift) for number in numbers) / len(numbers)) - shift


def penalised_mean(values: Sequence[float | None], penalty: float) -> float | None:
    """The mean of values, None (not solved) counting as the penalty; None of no values."""
    counted = [penalty if value is None else value for value in values]
    return math.fsum(counted) / len(counted) if counted else None


def performance_points(ratios: Sequence[float | None]) -> tuple[tuple[float, float], ...]:
    """Points (tau, share with ratio <= tau) at each step; None (not solved) is in no share, but in the whole."""
    solved = sorted(ratio for ratio in ratios if ratio is not None)
    steps = {ratio: (place + 1) / len(ratios) for place, ratio in enumerate(solved)}
    return tuple(steps.items())


def tau_b(first: Sequence[float], second: Sequence[float]) -> float | None:
    """(C - D) / sqrt((C + D + T1) (C + D + T2)), in [-1, 1]; None where all of one column are equal.

    C, D: pairs in the same and in opposite order; T1, T2: pairs that are tied in the first or the second only
    (M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33(3), 1945).
    """
    columns = [np.asarray(column) for column in (first, second)]
    same = opposite = tied_first = tied_second = 0
    for start in range(0, len(first), _AT_ONCE):  # each against all others, so that every pair is met twice
        signs = [
            (column[start : start + _AT_ONCE, None] > column).astype(np.int8)
            - (column[start : start + _AT_ONCE, None] < column)
            for column in columns
        ]
        products = signs[0] * signs[1]
        met = int((products > 0).sum()), int((products < 0).sum())
        same, opposite = same + met[0], opposite + met[1]
        tied_first += int((signs[1] != 0).sum()) - sum(met)
        tied_second += int((signs[0] != 0).sum()) - sum(met)
    ordered = same + opposite
    product = (ordered + tied_first) * (ordered + tied_second)
    return (same - opposite) / math.sqrt(product) if product else None


_AT_ONCE = 1024
"""Values that are compared with all others at once."""
FEWEST = 6
"""With five differences the smallest two-sided p is 2 / 2^5 = 0.0625: nothing could be found at 5 %."""
DIGITS = 12
MOST_EXACT = 200
"""Differences up to which p is exact; the work grows with their cube."""


def signed_rank_p(differences: Sequence[float]) -> float:
    """The two-sided p of differences that are as likely up as down; infinite ones rank highest.

    1.0 when all are zero. Sizes that agree in 12 decimals are equal. Exact up to MOST_EXACT differences that are
    not zero; of more, the sum of ranks is taken as normal, with its own variance, which holds for ties too, and a
    correction for continuity.
    """
    if sum(difference != 0 for difference in differences) > MOST_EXACT:
        return _normal_p(np.asarray(differences))
    doubled = _doubled_ranks(differences)
    up = sum(rank for rank, difference in zip(doubled, differences, strict=True) if difference > 0)
    down = sum(rank for rank, difference in zip(doubled, differences, strict=True) if difference < 0)
    ranks = [rank for rank, difference in zip(doubled, differences, strict=True) if difference != 0]
    chances = _chances(ranks)
    return min(1.0, 2.0 * float(chances[: min(up, down) + 1].sum()))


def _normal_p(differences: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Each rank counts or not with chance 1/2: the mean of their sum is sum(r) / 2, its variance sum(r^2) / 4."""
    sizes = np.abs(differences).round(DIGITS)
    _, place, tied = np.unique(sizes, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(tied) - (tied - 1) / 2)[place]
    counted = ranks[differences != 0]
    smaller = min(ranks[differences > 0].sum(), ranks[differences < 0].sum())
    away = max(0.0, float(counted.sum() / 2 - smaller) - 0.5)
    return math.erfc(away / math.sqrt(float((counted**2).sum()) / 4) / math.sqrt(2))


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
