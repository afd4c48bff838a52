"""When did a series change its level? A piecewise constant fit, to date changes that the rule has told.

The Potts functional: absolute deviations from the level of each segment plus a penalty for each change, minimised
exactly by dynamic programming over the last change. F. Friedrich, A. Kempe, V. Liebscher, G. Winkler,
"Complexity penalized M-estimation: fast computation", J. Comput. Graph. Stat. 17(1), 2008.
"""

import math
import statistics
from bisect import insort
from collections.abc import Sequence
from itertools import pairwise

from pipebench.track.robust import SIGMA_OF_MAD

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
