"""All rows of few stages on few devices: what a search could have missed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import comb

import msgspec
import numba
import numpy as np

from pipebench.algorithms.orders.tables import ANY
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bounds import time_bound
from pipebench.costs.quantise import IntArray
from pipebench.hooks.manager import Host
from pipebench_search.line.kernel import look
from pipebench_search.line.loops import crossing_at, work_before
from pipebench_search.line.tables import CAP, END, LANE, SAVED, WAY, Costs, Line
from tests.contest.problems import Entry
from tests.nearness.distances import mean
from tests.nearness.problems import best_known, problems
from tests.plugins.search.line.test_annealing import Run

MOST_DEVICES, MORE_STAGES = 3, 4
"""Devices of a problem that is looked at; and stages, more than it has devices."""
LOOKS = 3_000_000
"""Rows of each number of stages that are looked at, at most: there are so many places for cuts that it is kept."""
MORE = 3
"""Kept in flight: as many as there are stages from each one on, and up to so many more; or all that fit."""


class Few(msgspec.Struct, frozen=True):
    """One problem. fastest_ns: by number of stages. best_ns: what `best` finds, of stages in a row or not."""

    problem: str
    devices: int
    bound_ns: int
    best_ns: int | None
    fastest_ns: dict[int, int | None]

    @property
    def least_ns(self) -> int | None:
        """Of all numbers of stages."""
        return min((ns for ns in self.fastest_ns.values() if ns is not None), default=None)


@dataclass(frozen=True, slots=True)
class Fastest:
    """Of the rows of so many stages. places: for cuts. ns: None where none fits into memory."""

    stages: int
    places: int
    looks: int
    ns: int | None
    rows: IntArray


def fastest(line: Line, stages: int, looks: int = LOOKS) -> Fastest:
    """The fastest row of all with cuts at the places where least is sent, on any lanes and run in any ways.

    Where many more stages than lanes are, neighbours are on different lanes.
    """
    lanes, ways = len(line.sizes), len(line.ways)
    patterns = np.array(list(_patterns(stages, lanes, stages > lanes + 2)), np.int64)
    each = len(patterns) * ways**stages * (MORE + 1)
    inside = 0
    while inside < len(line.order) - 1 and comb(inside + 1, stages - 1) * each <= looks:
        inside += 1
    at = places(line.costs, inside)
    best, rows = ANY, np.zeros((stages, 4), np.int64)
    made = rows.copy()
    for cuts in combinations(at.tolist(), stages - 1):
        made[:, END] = *cuts, len(line.order)
        best = _fastest_of(line.costs, made, patterns, ways, line.splits, best, rows)
    count = comb(len(at), stages - 1) * each
    return Fastest(stages, len(at), count, None if best == ANY else int(best), rows)


def places(costs: Costs, most: int) -> IntArray:
    """Where least is sent, one in each of so many parts of equal work and saved bytes together; or all."""
    if most >= len(work_before(costs)) - 2:
        return np.arange(1, len(work_before(costs)) - 1)
    work, saved, sent = work_before(costs), costs.sums[SAVED, 0, 0], crossing_at(costs)
    share = (work / max(1, work[-1]) + saved / max(1, saved[-1])) / 2
    ends = np.searchsorted(share, np.arange(most + 1) / max(1, most)).clip(1, len(work) - 1)
    found = [begin + int(np.argmin(sent[begin:end])) for begin, end in pairwise(ends) if begin < end]
    return np.array(found, np.int64)


def _patterns(stages: int, lanes: int, apart: bool) -> Iterator[tuple[int, ...]]:
    """Lanes of stages: all of them, a new one only behind the one before it."""
    for pattern in product(range(lanes), repeat=stages):
        new = all(lane <= 1 + max(pattern[:at], default=-1) for at, lane in enumerate(pattern))
        if new and max(pattern) == lanes - 1 and not (apart and any(a == b for a, b in pairwise(pattern))):
            yield pattern


@numba.njit
def _fastest_of(  # type: ignore[no-untyped-def]
    costs, made, patterns, ways, split, best, rows
):
    """Of rows with these ends, as `look` times them; those that are faster than `best` are written to `rows`."""
    count = len(made)
    for pattern in patterns:
        for number in range(ways**count):
            left = number
            for at in range(count):
                made[at, LANE], made[at, WAY] = pattern[at], left % ways
                left //= ways
            for more in range(MORE + 1):
                for at in range(count):
                    depth = costs.micro_batches if more == MORE else count - at + more
                    made[at, CAP] = min(costs.micro_batches, depth)
                ns = look(costs, made, split, best - 1)
                if ns < best:
                    best = ns
                    rows[:] = made
    return best


def on_few_devices(cells: int, seed: int) -> Iterator[Entry]:
    """Of the cells that `problems` has those with a flush on few devices."""
    for each in problems(cells, 0, seed):
        if not isinstance(each, Entry) or (each.group, each.mode) != ("chains", "sync"):
            continue
        if int(each.spec.devices) <= MOST_DEVICES:
            yield each


def few(host: Host, each: Entry, limit_s: float) -> Few:
    """Of one problem. limit_s: of `best`."""
    workload = WorkloadBuilder(host).workload(each.spec)
    problem = workload.problem(each.mode)
    known, devices = best_known(host, workload, each.mode, limit_s), problem.cluster.size
    run = Run(problem)
    line = run.line(run.even)
    assert line is not None
    found = {stages: fastest(line, stages).ns for stages in range(devices, devices + MORE_STAGES + 1)}
    return Few(each.label, devices, time_bound(problem).ns, known.ns if known else None, found)


def table(rows: Sequence[Few]) -> str:
    """In how many problems so many stages fit and are fastest, and what they take; in Markdown."""
    fits = [row for row in rows if row.least_ns is not None]
    made = [
        "| more stages than devices | fit | fastest | times the fastest, mean | worst |",
        "|---:|---:|---:|---:|---:|",
    ]
    for more in range(MORE_STAGES + 1):
        some = [(row.fastest_ns.get(row.devices + more), row.least_ns) for row in fits]
        ratios = [ns / least_ns for ns, least_ns in some if ns is not None and least_ns is not None]
        of_all = f"{mean(ratios):.3f} | {max(ratios):.2f}" if ratios else "- | -"
        made.append(f"| {more} | {len(ratios)} | {ratios.count(1.0)} | {of_all} |")
    planned = [row for row in rows if row.best_ns is not None]
    made += ["", f"Of {len(rows)} problems {len(fits)} have such rows, and {len(planned)} a plan of `best`."]
    for of, ns in (("the fastest of these rows", "least_ns"), ("the bound", "bound_ns")):
        ratios = [row.best_ns / getattr(row, ns) for row in planned if row.best_ns and getattr(row, ns)]
        if ratios:
            made.append(f"`best` takes {mean(ratios):.3f} times {of}, {min(ratios):.3f} to {max(ratios):.3f}.")
    return "\n".join(made)
