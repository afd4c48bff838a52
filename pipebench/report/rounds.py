"""The rounds of a trial as one line of a table, and the spread of its search times."""

import statistics
from collections.abc import Iterable

from msgspec.structs import replace

from pipebench.domain.row import Row
from pipebench.report.units import percent, seconds

SAME = ("status", "plan_id", "schedule_id", "simulated_s", "estimated_s", "counters")
RESTLESS = "rounds differ in plan or status: the planner is not deterministic for one seed"
ENOUGH = 3
"""Samples from which a spread says something."""


def merged_rounds(rows: Iterable[Row]) -> tuple[Row, ...]:
    """One row for each trial, in order. The worst round stands for all: a failure, else the slowest plan.

    Its search times are the samples of all rounds; where rounds differ a notice says so.
    """
    rounds: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = row.problem_id, row.planner, row.scheduler, row.adapted, row.status == "ok" or row.repetition
        rounds.setdefault(key, []).append(row)
    return tuple(_merged(same) if len(same) > 1 else same[0] for same in rounds.values())


def _merged(same: list[Row]) -> Row:
    failed = [row for row in same if row.status != "ok"]
    worst = failed[0] if failed else max(same, key=lambda row: row.simulated_s or row.estimated_s or 0.0)
    samples = tuple(sample for row in same for sample in row.search_samples)
    notices = dict.fromkeys(notice for row in same for notice in row.notices)
    if any(getattr(row, name) != getattr(worst, name) for row in same for name in SAME):
        notices[RESTLESS] = None
    if not samples or failed:
        return replace(worst, notices=tuple(notices))
    return replace(
        worst,
        notices=tuple(notices),
        search_samples=samples,
        search_cpu_s=statistics.median(cpu_s for cpu_s, _ in samples),
        search_wall_s=statistics.median(wall_s for _, wall_s in samples),
    )


def search_time(row: Row) -> str:
    """CPU time of the search, with half the interquartile range of its samples where there are enough."""
    median = seconds(row.search_cpu_s)
    if row.search_cpu_s and len(row.search_samples) >= ENOUGH:
        low, _, high = statistics.quantiles((cpu_s for cpu_s, _ in row.search_samples), n=4)
        return f"{median} ±{percent((high - low) / 2 / row.search_cpu_s)}"
    return median
