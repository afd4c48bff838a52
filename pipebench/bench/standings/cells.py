"""Rows folded to one cell for each entrant and problem, and the best known value of each problem."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from msgspec.structs import fields, replace

from pipebench.bench.standings.records import RUNGS, BestKnown, Entrant, Rung
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.row import Row, Status
from pipebench.domain.value import Value

Grid = Mapping[Entrant, Mapping[str, "EntrantCell"]]
"""Entrant, then problem_id."""


@dataclass(frozen=True, slots=True)
class EntrantCell:
    """One entrant on one problem. value_ns is None when it is not solved.

    rungs_ns: those of the claim ladder that are known. search_s: median CPU over the repetitions that solved it.
    """

    value_ns: int | None
    status: Status
    rungs_ns: Mapping[Rung, int]
    search_s: float | None


def value_s(row: Row) -> float | None:
    """What a row is compared by: simulated, else estimated seconds; None for a trial that failed."""
    if row.status != "ok":
        return None
    return row.simulated_s if row.simulated_s is not None else row.estimated_s


def nanoseconds(seconds: float) -> int:
    """Seconds as whole ns: values that the suite computed are whole ns already, so equal stays equal."""
    return round(seconds * NS_PER_S)


def entrant_of(row: Row) -> Entrant:
    """Who made a row."""
    return Entrant(planner=row.planner, scheduler=row.entered_scheduler, adapted=row.adapted, coarsen=row.coarsen)


def grid(rows: Iterable[Row]) -> Grid:
    """The cells of rows of one regime.

    `skipped` rows were never run and do not count. Of several repetitions the upper median stands for all, a
    failure counting as slower than any value: half of them failing is not solved.
    """
    return {
        entrant: {problem: _cell(same) for problem, same in problems.items()}
        for entrant, problems in _rows_by_entrant(rows).items()
    }


def _rows_by_entrant(rows: Iterable[Row]) -> dict[Entrant, dict[str, list[Row]]]:
    """In rows of older stores a planner that failed before a scheduler was known failed with each of its
    schedulers that has no row of that problem and repetition; where there is none it stands alone.
    """
    found: dict[Entrant, dict[str, list[Row]]] = {}
    unnamed: list[Row] = []
    for row in rows:
        if row.status == "skipped":
            continue
        if row.named_scheduler is None and not row.scheduler and row.status != "ok":
            unnamed.append(row)
            continue
        found.setdefault(entrant_of(row), {}).setdefault(row.problem_id, []).append(row)
    named = list(found)
    took = {
        (entrant, row.problem_id, row.repetition)
        for entrant, problems in found.items()
        for same in problems.values()
        for row in same
    }
    for row in unnamed:
        takers = [
            entrant
            for entrant in named
            if (entrant.planner, entrant.adapted, entrant.coarsen) == (row.planner, row.adapted, row.coarsen)
            and (entrant, row.problem_id, row.repetition) not in took
        ]
        for entrant in takers or [entrant_of(row)]:
            found.setdefault(entrant, {}).setdefault(row.problem_id, []).append(row)
    return found


_rungs_s = attrgetter(*(f"{rung}_s" for rung in RUNGS))


def _cell(same: Sequence[Row]) -> EntrantCell:
    def order(row: Row) -> float:
        seconds = value_s(row)
        return math.inf if seconds is None else seconds

    row = sorted(same, key=order)[len(same) // 2] if len(same) > 1 else same[0]
    seconds = value_s(row)
    if seconds is None:
        return EntrantCell(None, row.status, {}, None)
    searches = [each.search_cpu_s for each in same if each.status == "ok" and each.search_cpu_s is not None]
    return EntrantCell(
        nanoseconds(seconds),
        row.status,
        {rung: nanoseconds(value) for rung, value in zip(RUNGS, _rungs_s(row), strict=True) if value is not None},
        statistics.median(searches) if len(searches) > 1 else next(iter(searches), None),
    )


BEST = "best"
"""The name of the rows that `best_rows` makes."""


def best_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of `fastest_rows`, under the name `best`.

    It is no search of its own: search times, claims and notices stay with the row that it is; a notice names it.
    """
    blank = {name: field.default for name, field in _FIELDS.items() if name.startswith(("search_", "claimed_"))}
    blank |= {"search_samples": (), "search_ratio": {}, "planner": BEST}
    return tuple(
        replace(row, **blank, notices=(f"it is that of {row.planner}",)) for row in fastest_rows(rows).values()
    )


def fastest_rows(rows: Iterable[Row]) -> dict[str, Row]:
    """By problem_id, where several entrants met in this regime or the other one: the row of the fastest plan that
    fits; of equal ones the first.
    """
    of_problem: dict[str, list[Row]] = {}
    for row in rows:
        if not row.yardstick:
            of_problem.setdefault(row.problem_id, []).append(row)
    met = {same[0].workload_id for same in of_problem.values() if len({entrant_of(row) for row in same}) > 1}
    found = {}
    for problem, same in of_problem.items():
        solved = [(nanoseconds(seconds), row) for row in same if (seconds := value_s(row)) is not None]
        if solved and same[0].workload_id in met:
            found[problem] = min(solved, key=lambda each: each[0])[1]
    return found


_FIELDS = {field.name: field for field in fields(Row)}


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
    return tuple(_best_known_of(same) for same in of_problem.values())


def _best_known_of(same: Sequence[Row]) -> BestKnown:
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
