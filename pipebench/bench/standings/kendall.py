"""Kendall's tau-b: do two columns rank in the same order?"""

import math
from collections.abc import Sequence
from itertools import combinations


def tau_b(first: Sequence[int], second: Sequence[int]) -> float | None:
    """(C - D) / sqrt((C + D + T1) (C + D + T2)), in [-1, 1]; None where all of one column are equal.

    C, D: pairs in the same and in opposite order; T1, T2: pairs that are tied in the first or the second only
    (M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33(3), 1945).
    """
    same = opposite = tied_first = tied_second = 0
    for (a, x), (b, y) in combinations(list(zip(first, second, strict=True)), 2):
        if a == b and x == y:
            continue
        if a == b:
            tied_first += 1
        elif x == y:
            tied_second += 1
        elif (a < b) == (x < y):
            same += 1
        else:
            opposite += 1
    ordered = same + opposite
    product = (ordered + tied_first) * (ordered + tied_second)
    return (same - opposite) / math.sqrt(product) if product else None
