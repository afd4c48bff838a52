"""Wins, ties and losses of each pair of entrants, with an effect and an exact test beside it."""

import math
import statistics
from collections.abc import Mapping
from itertools import combinations

from msgspec.structs import replace

from pipebench.bench.standings.cells import Cell, Grid
from pipebench.bench.standings.records import Duel, Entrant
from pipebench.bench.standings.signed_rank import FEWEST, holm, signed_rank_p

TIE = 1e-3
"""Values are deterministic, but they rest on profiles that were measured: a tenth of a percent is well inside
the spread of any of them, and what a reader takes for equal."""


def duels(cells: Grid, tie: float = TIE) -> tuple[Duel, ...]:
    """Each pair of entrants that met on at least one problem, in the order of the grid.

    A value beats another that is larger by more than `tie` of the smaller; a failure loses against a success;
    two failures are no contest. Only problems that both were asked count.
    """
    found = [
        duel
        for first, second in combinations(cells, 2)
        if (duel := _duel(first, second, cells[first], cells[second], tie)).contests
    ]
    tested = [duel.p for duel in found if duel.p is not None]
    corrected = iter(holm(tested))
    return tuple(duel if duel.p is None else replace(duel, p_holm=next(corrected)) for duel in found)


def log_ratio(first: Cell, second: Cell, tie: float) -> float | None:
    """log(first / second): 0 for a tie, infinite where one failed, None where both did."""
    if first.value_ns is None or second.value_ns is None:
        if first.value_ns is second.value_ns:
            return None
        return math.inf if first.value_ns is None else -math.inf
    low, high = sorted((first.value_ns, second.value_ns))
    if high - low <= tie * low:
        return 0.0
    return math.log(max(first.value_ns, 1)) - math.log(max(second.value_ns, 1))


def _duel(
    first: Entrant, second: Entrant, ours: Mapping[str, Cell], theirs: Mapping[str, Cell], tie: float
) -> Duel:
    common = [problem for problem in ours if problem in theirs]
    outcomes = [log_ratio(ours[problem], theirs[problem], tie) for problem in common]
    logs = [outcome for outcome in outcomes if outcome is not None]
    ratios = [
        max(mine.value_ns, 1) / max(other.value_ns, 1)
        for mine, other in ((ours[problem], theirs[problem]) for problem in common)
        if mine.value_ns is not None and other.value_ns is not None
    ]
    return Duel(
        first=first,
        second=second,
        contests=len(logs),
        wins=sum(log < 0 for log in logs),
        ties=sum(log == 0 for log in logs),
        losses=sum(log > 0 for log in logs),
        both_solved=len(ratios),
        median_ratio=statistics.median(ratios) if ratios else None,
        p=signed_rank_p(logs) if len(logs) >= FEWEST else None,
    )
