"""Patterns that repeat, by modulo scheduling: each task and message as early as its lane or link is free.

Rau, Iterative Modulo Scheduling: An Algorithm For Software Pipelining Loops, MICRO-27 (1994), section 3.2, without
its backtracking: a pipeline without a flush has no recurrence but the memory of what is in flight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import assign, kernel
from pipebench.algorithms.orders.tables import AHEAD, ANY, BACK, LINK, NS, SENDER, Tables, Waits
from pipebench.costs.quantise import IntArray

FINE = 10
"""A period is closed in on to one part in 2^FINE."""


class Work(NamedTuple):
    """What has to find a place in a pattern.

    order: stages, each behind those that it reads from.
    duration: ns of backwards and forwards, shape (2, stages).
    lane_of: by stage.
    memory: bytes by stage, as `Tables.memory` has them.
    most_live: by stage the most micro-batches in flight.
    held, most_bytes: by lane.
    """

    order: IntArray
    duration: IntArray
    lane_of: IntArray
    memory: IntArray
    most_live: IntArray
    held: IntArray
    most_bytes: IntArray
    waits: Waits


@dataclass(frozen=True, slots=True)
class ModuloPattern:
    """Micro-batch 0 in a pattern of that period. task_ns: starts of backwards and forwards, shape (2, stages).

    message_ns: when the message of each row of `Tables.waits` starts, shape (rows).
    """

    period_ns: int
    task_ns: IntArray
    message_ns: IntArray


def modulo_pattern(
    tables: Tables, stages: Sequence[int], most_bytes: Sequence[int], most_live: Sequence[int]
) -> ModuloPattern | None:
    """A pattern of a short period that fits in memory; None where none was found.

    stages: each behind those that it reads from. most_bytes: by lane. most_live: by stage. Messages between two
    lanes wait for each other as `tables.link_mode` says.
    """
    work = Work(
        order=np.array(stages, np.int64),
        duration=tables.durations(split=False),
        lane_of=tables.lanes,
        memory=tables.memory,
        most_live=np.array(most_live, np.int64),
        held=np.array(tables.held, np.int64),
        most_bytes=np.array(most_bytes, np.int64),
        waits=tables.waits,
    )
    task_ns, message_ns = np.zeros((2, len(stages)), np.int64), np.zeros(len(work.waits.rows), np.int64)
    period_ns = shortest(task_ns, message_ns, ANY - 1, work)
    return None if period_ns == ANY else ModuloPattern(int(period_ns), task_ns, message_ns)


@kernel
def shortest(task_ns: IntArray, message_ns: IntArray, most_ns: int, work: Work) -> int:
    """A short period of `most_ns` at most, whose starts are written; ANY where none was found."""
    low = max(1, _busiest(work))
    if low > most_ns:
        return ANY
    if most_ns >= ANY - 1:
        high, least = low, work.duration.sum() + work.waits.rows[:, NS].sum() + 1
        while not _placed(task_ns, message_ns, high, work):
            if high > least:
                return ANY
            low, high = high, 2 * high
    else:
        high = most_ns
        if not _placed(task_ns, message_ns, high, work):
            return ANY
    tried, sent = task_ns.copy(), message_ns.copy()
    at = low
    while low < high:
        if _placed(tried, sent, at, work):
            high = at
            assign(task_ns, tried)
            assign(message_ns, sent)
        else:
            low = at + 1
        if high - low <= high >> FINE:
            break
        at = (low + high) // 2
    return high


@kernel
def _busiest(work: Work) -> int:
    """Busy ns of a micro-batch of the busiest lane or link."""
    lanes, rows = len(work.held), work.waits.rows
    load, links = np.zeros(lanes, np.int64), np.zeros(lanes * lanes, np.int64)
    for at in range(len(work.lane_of)):
        load[work.lane_of[at]] += work.duration[BACK, at] + work.duration[AHEAD, at]
    for row in range(len(rows)):
        if rows[row, LINK] >= 0:
            links[rows[row, LINK]] += rows[row, NS]
    most: int = max(load.max(), links.max())
    return most


@kernel
def _placed(task_ns: IntArray, message_ns: IntArray, period: int, work: Work) -> bool:
    """Whether all tasks and messages have a place in the period, and memory suffices. Starts are written."""
    duration, first, rows = work.duration, work.waits.first, work.waits.rows
    lanes, stages = len(work.held), len(work.order)
    # What is placed on lanes, and behind them on links: the next and the last number of each, by resource.
    items = np.empty((2 * stages + len(rows), 3), np.int64)
    last = np.full(lanes + lanes * lanes, -1, np.int64)
    count = 0
    for step in range(2 * stages):
        kind = AHEAD if step < stages else BACK
        at = work.order[step] if step < stages else work.order[2 * stages - 1 - step]
        ready = 0 if kind == AHEAD else task_ns[AHEAD, at] + duration[AHEAD, at]
        for row in range(first[kind, at], first[kind, at + 1]):
            sender, ns, link = rows[row, SENDER], rows[row, NS], rows[row, LINK]
            start = task_ns[kind, sender] + duration[kind, sender]
            if link >= 0 and ns > 0:
                start = _free(items, last[lanes + link], start, ns, period)
                if start < 0:
                    return False
                items[count, 0], items[count, 1], items[count, 2] = start % period, ns, last[lanes + link]
                last[lanes + link] = count
                count += 1
            message_ns[row] = start
            ready = max(ready, start + ns)
        lane, ns = work.lane_of[at], duration[kind, at]
        ready = _free(items, last[lane], ready, ns, period)
        if ready < 0:
            return False
        items[count, 0], items[count, 1], items[count, 2] = ready % period, ns, last[lane]
        last[lane] = count
        count += 1
        task_ns[kind, at] = ready
    return _fits(task_ns, period, work)


@kernel
def _free(items: IntArray, last: int, ready: int, ns: int, period: int) -> int:
    """The first instant from `ready` at which a resource is free for so long in each period; -1: none.

    What takes 0 ns may stand where another begins or ends, not inside it.
    last: the last item that is placed on it; items: start in the period, ns, and the item before.
    """
    if ns > period:
        return -1
    start, moved = ready, True
    while moved:
        moved = False
        at = last
        while at >= 0:
            since = (start - items[at, 0]) % period
            if since < items[at, 1] and since + ns > 0:
                start, moved = start + items[at, 1] - since, True
            elif period - since < ns:
                start, moved = start + period - since + items[at, 1], True
            if start - ready >= period:
                return -1
            at = items[at, 2]
    return start


@kernel
def _fits(task_ns: IntArray, period: int, work: Work) -> bool:
    """Whether the micro-batches in flight fit at the start of each task, and no stage has too many."""
    duration, lane_of, memory = work.duration, work.lane_of, work.memory
    stages = len(lane_of)
    for event in range(2 * stages):
        kind, at = event // stages, event % stages
        now, lane = task_ns[kind, at], lane_of[at]
        used = work.held[lane] + memory[2, at]
        for other in range(stages):
            if lane_of[other] != lane:
                continue
            begun = (now - task_ns[AHEAD, other]) // period
            ended = (now - task_ns[BACK, other] - duration[BACK, other]) // period
            # The task that starts now is under way, though one of 0 ns has ended.
            live = max(begun - ended, 1 if other == at else 0)
            if other == at and live > work.most_live[at]:
                return False
            used += live * memory[0, other] + (memory[1, other] if live > 0 else 0)
        if used > work.most_bytes[lane]:
            return False
    return True
