"""From rows to one cell for each entrant and problem: repetitions are folded, failures stay."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipebench.bench.standings.records import RUNGS, Entrant, Rung
from pipebench.domain.row import Row, Status

NS_PER_S = 1e9
Grid = Mapping[Entrant, Mapping[str, "Cell"]]
"""Entrant, then problem_id."""


@dataclass(frozen=True, slots=True)
class Cell:
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
    return Entrant(planner=row.planner, scheduler=row.scheduler, adapted=row.adapted)


def grid(rows: Iterable[Row]) -> Grid:
    """The cells of rows of one regime.

    `skipped` rows were never run and do not count. Of several repetitions the upper median stands for all, a
    failure counting as slower than any value: half of them failing is not solved.
    """
    return {
        entrant: {problem: _cell(same) for problem, same in problems.items()}
        for entrant, problems in _gathered(rows).items()
    }


def _gathered(rows: Iterable[Row]) -> dict[Entrant, dict[str, list[Row]]]:
    """A planner that failed before a scheduler was known failed with each of its schedulers that has no row of
    that problem and repetition; where there is none it stands alone, without a scheduler.
    """
    found: dict[Entrant, dict[str, list[Row]]] = {}
    unnamed: list[Row] = []
    for row in rows:
        if row.status == "skipped":
            continue
        if not row.scheduler and row.status != "ok":
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
            if (entrant.planner, entrant.adapted) == (row.planner, row.adapted)
            and (entrant, row.problem_id, row.repetition) not in took
        ]
        for entrant in takers or [entrant_of(row)]:
            found.setdefault(entrant, {}).setdefault(row.problem_id, []).append(row)
    return found


def _cell(same: Sequence[Row]) -> Cell:
    def order(row: Row) -> float:
        seconds = value_s(row)
        return math.inf if seconds is None else seconds

    row = sorted(same, key=order)[len(same) // 2]
    seconds = value_s(row)
    if seconds is None:
        return Cell(None, row.status, {}, None)
    ladder: dict[Rung, float | None] = {rung: getattr(row, f"{rung}_s") for rung in RUNGS}
    searches = [each.search_cpu_s for each in same if each.status == "ok" and each.search_cpu_s is not None]
    return Cell(
        nanoseconds(seconds),
        row.status,
        {rung: nanoseconds(number) for rung, number in ladder.items() if number is not None},
        statistics.median(searches) if searches else None,
    )
