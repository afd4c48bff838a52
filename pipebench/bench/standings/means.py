"""Means over problems of very different size, in which a failure is never left out.

Shifted geometric mean: (prod (v_i + s))^(1/n) - s. Without a shift it is the mean for ratios (Fleming and
Wallace, "How not to lie with statistics", CACM 29(3), 1986); the shift keeps values near zero from ruling the
product (Achterberg, "Constraint Integer Programming", thesis, TU Berlin 2007, appendix A, with 10 s for solvers
that run up to an hour; Mittelmann's benchmarks use the same). Ratios to the best known are never below 1 and
need none. Searches here take from a millisecond to minutes: below 10 ms the start of a trial and the clock weigh
as much as the planner, so 10 ms is the shift.

Failures count as ten times the limit, as in PAR10 (Hutter, Hoos, Leyton-Brown and Stuetzle, "ParamILS", JAIR 36,
2009). A search has a limit: the time that a trial may take. A plan has none; there a failure counts as a plan ten
times slower than the best known, and so does a plan that is slower still. The penalty is fixed on purpose: taken
from the worst plan seen, a planner could better its mean by failing where it is worst.
"""

import math
from collections.abc import Iterable, Sequence

PENALTY = 10.0
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


def penalised(values: Sequence[float | None], penalty: float) -> list[float]:
    """The values, at most the penalty; None (not solved) is the penalty."""
    return [penalty if value is None else min(value, penalty) for value in values]
