"""Plans to start from: stages in a row, each on devices of its own, at a pace that their memory allows.

Dynamic programming over runs of consecutive operators. At a given period a stage holds as many micro-batches as
start between a forward and the end of its backward. So of all rows of stages behind a place the one is kept in
which a micro-batch is back first: it leaves the most room to the stages before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pipebench.bounds import unbounded
from pipebench.bounds.rows_of_stages import Frame, Row
from pipebench.bounds.stage_choices import Line
from pipebench.bounds.stage_figures import FAR
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import ReplicaMode
from pipebench_search.drafts.draft import Draft, Drafting, Manner, Part

PACES = 40
"""Periods that are tried for a micro-batch size, each larger than the one before by a constant factor."""
SLOWEST = 6.0
"""The longest of them, as a multiple of the shortest."""
NEAR = 1.35
"""Periods are tried up to this factor above the one that gives the best plan by the estimate."""
KEPT = 12
"""Plans that are handed on."""
MOST_ROWS = 2**24
"""Stages times devices times periods that are looked at for a micro-batch size, by trying fewer periods."""


@dataclass(frozen=True, slots=True)
class _Found:
    """about_ns: of a mini-batch. stages: rows of the table, from the first stage to the last."""

    about_ns: int
    stages: tuple[int, ...]


def rows_to_start_from(
    drafting: Drafting, micro_batches: tuple[int, ...], late: Callable[[], bool]
) -> list[Draft]:
    """Drafts of stages in a row, those that take least first; none where the problem is too large."""
    if unbounded(drafting.problem):
        return []
    line = Line(drafting.problem)
    found: list[tuple[int, int, Draft]] = []
    for size in micro_batches:
        if late():
            break
        row = Frame.of(line, size).row()
        for each in _rows_of(row):
            draft = _draft(row, line, each, drafting)
            if draft is not None and all(draft != other for _, _, other in found):
                found.append((each.about_ns, len(found), draft))
    return [draft for _, _, draft in sorted(found, key=lambda each: each[:2])[:KEPT]]


def _rows_of(row: Row) -> Iterator[_Found]:
    """The best rows of stages with one micro-batch size, at each of several periods."""
    rows, runs, size = row.rows, row.micro_batches, row.problem.cluster.size
    if not len(rows.end):
        return
    sync = row.problem.regime.mode == "sync"
    least = max(1, -(-int(row.work[-1]) // (runs * size)))
    paces = max(2, min(PACES, MOST_ROWS // (len(rows.end) * size)))
    best = FAR
    for period in (int(least * SLOWEST ** (at / (paces - 1))) for at in range(paces)):
        if runs * period >= NEAR * best:
            return
        for found in _at_pace(row, period, sync):
            yield found
            best = min(best, found.about_ns)


def _at_pace(row: Row, period: int, sync: bool) -> Iterator[_Found]:
    """The row of stages that is back first, for each number of devices that gives one."""
    rows, size, places, runs = row.rows, row.problem.cluster.size, row.places, row.micro_batches
    back_ns = np.full((size + 1, places + 1), FAR, np.int64)
    stage = np.full((size + 1, places + 1), -1, np.int64)
    back_ns[0, places] = 0
    back, chosen = back_ns.reshape(-1), stage.reshape(-1)  # by cell: used devices, then place
    lane = period * rows.turns
    fast = np.flatnonzero(rows.both <= lane)
    end, first, devices = rows.end[fast], rows.first[fast], rows.devices[fast]
    stay = rows.both[fast] + _message_ns(row, fast)
    most = np.minimum(rows.live[fast], (FAR - 1) // lane[fast]) * lane[fast]
    if sync:
        most = np.where(rows.live[fast] >= rows.runs[fast], FAR - 1, most)
    for used in range(size):
        there = back[used * (places + 1) + end] + stay
        fits = np.flatnonzero((there <= most) & (used + devices <= size))
        there, cell = there[fits], (used + devices[fits]) * (places + 1) + first[fits]
        before = back.copy()
        np.minimum.at(back, cell, there)
        leads = np.flatnonzero((there == back[cell]) & (there < before[cell]))[::-1]
        chosen[cell[leads]] = fast[fits[leads]]  # of several in one cell the last one stands: the first row
    for used in range(1, size + 1):
        if stage[used, 0] < 0:
            continue
        stages = list(_stages(stage, rows.end, rows.devices, used))
        pace = int((-(-rows.both[stages] // rows.turns[stages])).max())
        update = int(rows.update[stages].max())
        about = (runs - 1) * pace + int(back_ns[used, 0]) + update if sync else runs * period
        yield _Found(about, tuple(stages))


def _stages(chosen: IntArray, end: IntArray, devices: IntArray, used: int) -> Iterator[int]:
    """From the first place on, the stage that was chosen there."""
    place = 0
    while used:
        row = int(chosen[used, place])
        yield row
        used, place = used - int(devices[row]), int(end[row])


def _message_ns(row: Row, which: IntArray) -> IntArray:
    """What a micro-batch takes from each stage to the one behind it, and back."""
    rows, messages = row.rows, row.messages
    end, sharers = rows.end[which], rows.sharers[which]
    sends = (end < row.places) & (messages.made[end] >= rows.first[which])
    return np.where(sends, messages.down[sharers, end] + messages.up[sharers, end], 0)


def _draft(row: Row, line: Line, found: _Found, drafting: Drafting) -> Draft | None:
    """The draft; None where no way of the drafting runs a stage so."""
    rows, parts, sizes = row.rows, [], []
    for group, at in enumerate(found.stages):
        way = _way(drafting, int(rows.degree[at]), bool(rows.again[at]))
        if way is None:
            return None
        operators = drafting.in_order(line.order[int(rows.first[at]) : int(rows.end[at])])
        mode: ReplicaMode = "round_robin" if rows.turns[at] > 1 else "split"
        parts.append(Part(operators, group, way, row.micro_batch, mode))
        sizes.append(int(rows.devices[at]))
    draft = Draft(tuple(parts), tuple(sizes))
    return draft if drafting.possible(draft) else None


def _way(drafting: Drafting, degree: int, again: bool) -> Manner | None:
    for way in drafting.ways:
        if way.tensor_parallel == degree and (way.recompute == "stage") == again:
            return way
    return None
