"""The best known value of each problem, and how far each row is from it and from the proven bound."""

from collections.abc import Iterable, Sequence

from pipebench.bench.standings.cells import NS_PER_S, entrant_of, nanoseconds, value_s
from pipebench.bench.standings.records import BestKnown
from pipebench.domain.row import Row
from pipebench.domain.value import Value


class Relative(Value, frozen=True, kw_only=True):
    """A row beside others of its problem: ratio = value / best known, gap = (value - bound) / bound."""

    ratio: float | None
    gap: float | None


def best_values_ns(rows: Iterable[Row]) -> dict[str, int]:
    """For each problem_id the smallest value of its rows, in ns; a problem that nobody solved is left out.

    A problem_id holds the regime, so regimes are never mixed.
    """
    best: dict[str, int] = {}
    for row in rows:
        seconds = value_s(row)
        if seconds is not None:
            value = nanoseconds(seconds)
            best[row.problem_id] = min(value, best.get(row.problem_id, value))
    return best


def relative(rows: Sequence[Row]) -> list[Relative]:
    """Ratio to best and gap of each row, in the order of the rows; None where the trial failed."""
    best = best_values_ns(rows)
    found = []
    for row in rows:
        seconds = value_s(row)
        ratio = None if seconds is None else ratio_to_best(nanoseconds(seconds), best[row.problem_id])
        found.append(Relative(ratio=ratio, gap=_gap(seconds, row.bound_s)))
    return found


def ratio_to_best(value_ns: int, best_ns: int) -> float:
    """value / best, at least 1; a time of 0 counts as 1 ns."""
    return max(value_ns, 1) / max(best_ns, 1)


def best_known(rows: Iterable[Row]) -> tuple[BestKnown, ...]:
    """The best known plan of each problem in the order of the rows, with all entrants that reach it."""
    of_problem: dict[str, list[Row]] = {}
    for row in rows:
        of_problem.setdefault(row.problem_id, []).append(row)
    return tuple(_described(same) for same in of_problem.values())


def _described(same: Sequence[Row]) -> BestKnown:
    row = same[0]
    bound = max((each.bound_s for each in same if each.bound_s is not None), default=None)
    solved = [(each, nanoseconds(seconds)) for each in same if (seconds := value_s(each)) is not None]
    best_ns = min((value for _, value in solved), default=None)
    value = None if best_ns is None else best_ns / NS_PER_S
    reaching = [entrant_of(each) for each, reached in solved if reached == best_ns]
    return BestKnown(
        problem_id=row.problem_id,
        profile=row.profile,
        cluster=row.cluster,
        devices=row.devices,
        mini_batch=row.mini_batch,
        value_s=value,
        bound_s=bound,
        gap=_gap(value, bound),
        entrants=tuple(dict.fromkeys(reaching)),
    )


def _gap(value: float | None, bound: float | None) -> float | None:
    return None if value is None or not bound else (value - bound) / bound
