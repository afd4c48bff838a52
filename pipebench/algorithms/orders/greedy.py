"""Greedy orders of a plan: whenever a lane is free, it runs what it can start first."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.orders.tables import AHEAD, ANY, BACK, WEIGHT, Tables, Waits
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.schedule import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT

Order = list[tuple[str, int, int]]
"""Tasks of one lane: (kind, stage, micro-batch)."""
WAITS, STALE = -1, -2
"""Instead of an instant, or of a kind of task."""


class GreedyOrder:
    """The order with these most micro-batches in flight, by stage. split: weight gradients are tasks.

    orders: by lane. peak_bytes: by lane. Raises UnsupportedProblem where stages wait for each other in a circle.
    """

    def __init__(self, tables: Tables, caps: list[int], split: bool) -> None:
        self._tables, self._split = tables, split
        stages, count, kinds = len(tables.forward), tables.count, 3 if split else 2
        lanes = len(tables.held)
        self._tasks = np.zeros((kinds * stages * count, 3), np.int64)
        self._free = np.zeros(lanes, np.int64)
        peak = np.array(tables.held, np.int64)
        ran = run(
            self._tasks,
            self._free,
            peak,
            np.full(lanes, ANY, np.int64),
            ANY,
            count,
            np.array(caps, np.int64),
            tables.durations(split),
            tables.lanes,
            tables.memory,
            tables.waits,
        )
        if ran < len(self._tasks):  # the oldest micro-batch could go on
            raise UnsupportedProblem("the stages of this plan wait for each other in a circle")
        self.peak_bytes: list[int] = peak.tolist()

    @property
    def orders(self) -> list[Order]:
        """The tasks of each lane."""
        back = INPUT_GRADIENT if self._split else BACKWARD
        names = back, FORWARD, WEIGHT_GRADIENT
        found: list[Order] = [[] for _ in self._tables.held]
        for kind, stage, number in self._tasks.tolist():
            found[self._tables.lane_of[stage]].append((names[kind], stage, number))
        return found

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller is better: within the reserve, within memory, beyond it; then by time, beyond it by excess."""
        tables, peaks = self._tables, self.peak_bytes
        for number in range(len(tables.limits[0])):
            if all(peak <= limits[number] for peak, limits in zip(peaks, tables.limits, strict=True)):
                return number, self.makespan_ns
        excess = max(peak - limits[-1] for peak, limits in zip(peaks, tables.limits, strict=True))
        return len(tables.limits[0]), excess

    @property
    def makespan_ns(self) -> int:
        """When all tasks and all-reduces have ended."""
        ends: list[int] = self._free.tolist()
        for lane, reduce in zip(self._tables.lane_of, self._tables.reduce, strict=True):
            ends[lane] += reduce
        return max(ends)


@kernel
def run(
    tasks: IntArray,
    free: IntArray,
    peak: IntArray,
    most_bytes: IntArray,
    most_ns: int,
    count: int,
    caps: IntArray,
    duration: IntArray,
    lane_of: IntArray,
    memory: IntArray,
    waits: Waits,
) -> int:
    """Run `count` micro-batches greedily; return how many tasks ran: fewer than there are where a limit is passed.

    Of all that can start first the smaller kind goes first, then the smaller micro-batch, then the later stage.
    tasks: (kind, stage, micro-batch) in the order in which they start; not written where it has no rows.
    free: by lane, when its last task ends. peak: bytes by lane; without micro-batches at first. most_bytes: by
    lane. most_ns: of the end of each task that must follow. duration: shape (kinds, stages).
    """
    first, rows, sent_first, sent = waits
    kinds, stages = duration.shape
    releases = WEIGHT if kinds > WEIGHT else BACK
    lanes = len(free)
    hosted, lane_first = _hosted(lane_of, lanes)
    tail = _tails(duration, waits) if most_ns < ANY else np.zeros_like(duration)
    used, left = peak.copy(), np.zeros(lanes, np.int64)
    for at in range(stages):
        for each in range(kinds):
            left[lane_of[at]] += count * duration[each, at]
    done = np.zeros((kinds, stages), np.int64)
    arrived = np.zeros((len(rows), count), np.int64)
    link_free = np.zeros(lanes * lanes, np.int64)
    # When all is there that the next task of each kind and stage waits for; WAITS: not yet. Kinds and stages of
    # which that may have changed.
    there = np.full((kinds, stages), WAITS, np.int64)
    changed, changes = np.empty((kinds + stages, 2), np.int64), stages
    for at in range(stages):
        changed[at, 0], changed[at, 1] = AHEAD, at
    # What each lane would run next: kind (STALE: to be found out again, WAITS: nothing), stage and start.
    next_kind = np.full(lanes, STALE, np.int64)
    next_stage, next_start = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    total: int = kinds * stages * count
    for turn in range(total):
        for change in range(changes):
            each, at = changed[change, 0], changed[change, 1]
            ran = done[each, at]
            if (
                ran == count
                or (each == AHEAD and ran - done[releases, at] >= caps[at])
                or (each == BACK and ran >= done[AHEAD, at])
                or (each == WEIGHT and ran >= done[BACK, at])
            ):
                there[each, at] = WAITS
                continue
            ready = 0
            if each != WEIGHT:
                for row in range(first[each, at], first[each, at + 1]):
                    if done[each, rows[row, 0]] <= ran:
                        ready = WAITS
                        break
                    ready = max(ready, arrived[row, ran])
            there[each, at] = ready
            here = lane_of[at]
            if ready == WAITS or next_kind[here] == STALE:
                continue
            ready, chosen, other = max(ready, free[here]), next_kind[here], next_stage[here]
            if (
                chosen == WAITS
                or ready < next_start[here]
                or (
                    ready == next_start[here]
                    and (each < chosen or (each == chosen and (ran, -at) < (done[each, other], -other)))
                )
            ):
                next_kind[here], next_stage[here], next_start[here] = each, at, ready
        changes = 0
        lane, kind, stage, start, number = -1, -1, -1, 0, 0
        for here in range(lanes):
            if next_kind[here] == STALE:
                next_kind[here] = WAITS
                for each in range(kinds):
                    for place in range(lane_first[here], lane_first[here + 1]):
                        at = hosted[place]
                        if there[each, at] == WAITS:
                            continue
                        ready = max(free[here], there[each, at])
                        chosen = next_kind[here]
                        if (
                            chosen == WAITS
                            or ready < next_start[here]
                            or (
                                ready == next_start[here]
                                and each == chosen
                                and done[each, at] < done[each, next_stage[here]]
                            )
                        ):
                            next_kind[here], next_stage[here], next_start[here] = each, at, ready
            each = next_kind[here]
            if each == WAITS:
                continue
            at, ready = next_stage[here], next_start[here]
            ran = done[each, at]
            if lane < 0 or ready < start or (ready == start and (each, ran, -at) < (kind, number, -stage)):
                lane, kind, stage, start, number = here, each, at, ready, ran
        if lane < 0:
            return turn
        if len(tasks):
            tasks[turn, 0], tasks[turn, 1], tasks[turn, 2] = kind, stage, number
        free[lane] = start + duration[kind, stage]
        left[lane] -= duration[kind, stage]
        done[kind, stage] += 1
        live = done[AHEAD, stage] - done[releases, stage]
        if kind == AHEAD:
            used[lane] += memory[0, stage] + (memory[1, stage] if live == 1 else 0)
        peak[lane] = max(peak[lane], used[lane] + memory[2, stage])
        last = free[lane] + (count - 1 - number) * duration[kind, stage]
        if free[lane] + left[lane] > most_ns or last + tail[kind, stage] > most_ns:
            return turn
        if peak[lane] > most_bytes[lane]:
            return turn
        if kind == releases:
            used[lane] -= memory[0, stage] + (memory[1, stage] if live == 0 else 0)
        next_kind[lane] = STALE
        for each in range(kinds):
            changed[each, 0], changed[each, 1] = each, stage
        changes = kinds
        if kind != WEIGHT:
            for place in range(sent_first[kind, stage], sent_first[kind, stage + 1]):
                row = sent[place]
                comes, link = free[lane], rows[row, 2]
                if link >= 0:
                    comes = max(comes, link_free[link])
                    link_free[link] = comes + rows[row, 1]
                arrived[row, number] = comes + rows[row, 1]
                if done[kind, rows[row, 3]] == number:
                    changed[changes, 0], changed[changes, 1] = kind, rows[row, 3]
                    changes += 1
    return total


@kernel
def _tails(duration: IntArray, waits: Waits) -> IntArray:
    """The least ns from the end of each kind of task of a stage to the end of all that waits for it."""
    _, rows, sent_first, sent = waits
    kinds, stages = duration.shape
    tail = np.zeros((kinds, stages), np.int64)
    for kind in range(BACK, AHEAD + 1):
        for at in range(stages):
            tail[kind, at] = duration[WEIGHT, at] if kinds > WEIGHT and kind == BACK else 0
            if kind == AHEAD:
                tail[kind, at] = duration[BACK, at] + tail[BACK, at]
        grown, rounds = True, 0
        while grown and rounds < stages:
            grown, rounds = False, rounds + 1
            for each in range(stages):
                at = each if kind == BACK else stages - 1 - each
                for place in range(sent_first[kind, at], sent_first[kind, at + 1]):
                    row = sent[place]
                    ns = rows[row, 1] + duration[kind, rows[row, 3]] + tail[kind, rows[row, 3]]
                    if ns > tail[kind, at]:
                        tail[kind, at], grown = ns, True
    return tail


@kernel
def _hosted(lane_of: IntArray, lanes: int) -> tuple[IntArray, IntArray]:
    """The stages of each lane, the later first, and the place of its first one."""
    hosted, first = np.empty(len(lane_of), np.int64), np.zeros(lanes + 1, np.int64)
    for at in range(len(lane_of)):
        first[lane_of[at] + 1] += 1
    for lane in range(lanes):
        first[lane + 1] += first[lane]
    free = first[:-1].copy()
    for at in range(len(lane_of) - 1, -1, -1):
        hosted[free[lane_of[at]]] = at
        free[lane_of[at]] += 1
    return hosted, first
