"""Greedy orders of a plan: whenever a lane is free, it runs what it can start first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.planning import memory_limits
from pipebench.algorithms.steady_memory import Holder, steady_ns, ways_down_ns
from pipebench.costs.formula import StageMemory, StageTimes
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT

Order = list[tuple[str, int, int]]
"""Tasks of one lane: (kind, stage, micro-batch)."""
BACK, AHEAD, WEIGHT = range(3)
"""Kinds of tasks: a backward or an input gradient, a forward, a weight gradient. The smaller number goes first."""
WAITS, STALE = -1, -2
"""Instead of an instant, or of a kind of task."""
ANY = 2**62
"""A limit that nothing passes, in ns or bytes."""


@dataclass(frozen=True)
class Tables:
    """A plan in numbers, by stage. before, after: neighbours with the ns of a message from or to them.

    reduce: ns of its all-reduce, or of the step of its optimizer. each, while_live, workspace: bytes of a
    micro-batch, while one is live, during a task. held: by lane, bytes without micro-batches. limits: by lane,
    bytes that it may use, less the reserve first. link_mode: whether messages wait for each other on the link
    between two lanes, as `Cluster.link_mode` says; with `delay` they do not.
    """

    count: int
    forward: list[int]
    backward: list[int]
    weight: list[int]
    reduce: list[int]
    before: list[list[tuple[int, int]]]
    after: list[list[tuple[int, int]]]
    lane_of: list[int]
    each: list[int]
    while_live: list[int]
    workspace: list[int]
    held: list[int]
    limits: list[tuple[int, ...]]
    link_mode: LinkMode = "delay"

    @classmethod
    def of(cls, model: CostModel, plan: Plan, count: int, links: bool = False) -> "Tables":
        """Those of a plan whose stages run `count` micro-batches each.

        links: messages between two lanes wait for each other as the cluster's links make them wait.
        """
        link_mode: LinkMode = model.problem.cluster.link_mode if links else "delay"
        edges = model.messages(plan)
        times = [model.stage_times(stage, plan) for stage in plan.stages]
        memory = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
        lanes, lane_of = lanes_of(plan)
        waits = dict.fromkeys(plan.order_edges, (0, 0))
        for message in edges:
            pair = message.source, message.target
            sent = model.message_ns(plan, message), model.message_ns(plan, message, backward=True)
            waits[pair] = together(waits.get(pair, (0, 0)), sent, link_mode)
        limits = [memory_limits(model.problem, devices) for devices in lanes]
        return cls.filled(count, times, memory, waits, lane_of, limits, link_mode)

    @classmethod
    def filled(
        cls,
        count: int,
        times: Sequence[StageTimes],
        memory: Sequence[StageMemory],
        waits: Mapping[tuple[int, int], tuple[int, int]],
        lane_of: list[int],
        limits: list[tuple[int, ...]],
        link_mode: LinkMode = "delay",
    ) -> "Tables":
        """From what each stage takes and holds. waits: by pair of stages the ns of messages there and back."""
        before: list[list[tuple[int, int]]] = [[] for _ in times]
        after: list[list[tuple[int, int]]] = [[] for _ in times]
        for (source, target), (there, back) in sorted(waits.items()):
            before[target].append((source, there))
            after[source].append((target, back))
        held = [0] * len(limits)
        for lane, each in zip(lane_of, memory, strict=True):
            held[lane] += each.held
        return cls(
            count=count,
            forward=[each.forward for each in times],
            backward=[each.backward for each in times],
            weight=[each.weight_gradient for each in times],
            reduce=[each.all_reduce for each in times],
            before=before,
            after=after,
            lane_of=lane_of,
            each=[each.per_micro_batch for each in memory],
            while_live=[each.while_live for each in memory],
            workspace=[each.workspace for each in memory],
            held=held,
            limits=limits,
            link_mode=link_mode,
        )

    @cached_property
    def follow(self) -> list[int]:
        """Stages on the longest path from each stage to the end, itself included."""
        longest = [1] * len(self.after)
        for _ in self.after:
            before = list(longest)
            for stage in reversed(range(len(self.after))):
                longest[stage] = max([1, *(1 + longest[successor] for successor, _ in self.after[stage])])
            if longest == before:
                break
        return longest

    @cached_property
    def lanes(self) -> IntArray:
        """The lane of each stage."""
        return np.array(self.lane_of, np.int64)

    @cached_property
    def memory(self) -> IntArray:
        """Bytes of a micro-batch, of what is there while one is live, and of a workspace; shape (3, stages)."""
        return np.array([self.each, self.while_live, self.workspace], np.int64)

    @cached_property
    def waits(self) -> "Waits":
        """For what the tasks of each stage wait, and who waits for them."""
        rows: list[tuple[int, int, int, int]] = []
        first: list[list[int]] = []
        senders: list[list[list[int]]] = []
        for neighbours in (self.after, self.before):
            first.append([len(rows)])
            senders.append([[] for _ in self.forward])
            for stage, each in enumerate(neighbours):
                for other, ns in each:
                    senders[-1][other].append(len(rows))
                    rows.append((other, ns, self._link(other, stage), stage))
                first[-1].append(len(rows))
        sent = [row for kind in senders for each in kind for row in each]
        lengths = [0, *(len(each) for each in senders[0]), *(len(each) for each in senders[1])]
        ends = np.cumsum(lengths)
        stages = len(self.forward)
        return Waits(
            np.array(first, np.int64),
            np.array(rows, np.int64).reshape(-1, 4),
            np.stack([ends[: stages + 1], ends[stages:]]),
            np.array(sent, np.int64),
        )

    def _link(self, sender: int, receiver: int) -> int:
        """The number of the link on which a message waits for others; -1: it waits for none."""
        here, there = self.lane_of[sender], self.lane_of[receiver]
        if self.link_mode == "delay" or here == there:
            return -1
        if self.link_mode == "half":
            here, there = min(here, there), max(here, there)
        return here * len(self.held) + there

    def durations(self, split: bool) -> IntArray:
        """Ns of the tasks of each kind, shape (kinds, stages). split: weight gradients are tasks of their own."""
        if not split:
            return np.array([self.backward, self.forward], np.int64)
        back = [whole - part for whole, part in zip(self.backward, self.weight, strict=True)]
        return np.array([back, self.forward, self.weight], np.int64)


def together(one: tuple[int, int], other: tuple[int, int], link_mode: LinkMode) -> tuple[int, int]:
    """Ns there and back of messages between the same stages: on one link one behind the other."""
    if link_mode == "delay":
        return max(one[0], other[0]), max(one[1], other[1])
    return one[0] + other[0], one[1] + other[1]


def numbers_in_flight(tables: Tables, most: int) -> tuple[list[list[int]], list[list[int]]]:
    """Micro-batches in flight of each stage that are worth a try, `most` at most, none twice.

    Whatever memory there is: as many as stages follow, one more, twice as many, any number, half as many, one. And
    where the first do not fit in memory, what does, the fewer first.
    """
    follow = tables.follow
    caps = [
        follow,
        [number + 1 for number in follow],
        [2 * number for number in follow],
        [most] * len(follow),
        [-(-number // 2) for number in follow],
        [1] * len(follow),
    ]
    free = dict.fromkeys(tuple(min(number, most) for number in each) for each in caps)
    if _fit(tables, [min(number, most) for number in follow]):
        return [list(each) for each in free], []
    held = dict.fromkeys(tuple(min(number, most) for number in each) for each in _as_memory_allows(tables))
    return [list(each) for each in free], [list(each) for each in held if each not in free]


def _fit(tables: Tables, caps: list[int]) -> bool:
    """Whether devices have room for as many micro-batches of each stage."""
    return min(_left(tables, caps)) >= 0


def _room(tables: Tables) -> list[int]:
    """Bytes of each lane for micro-batches."""
    workspace = [0] * len(tables.held)
    for stage, lane in enumerate(tables.lane_of):
        workspace[lane] = max(workspace[lane], tables.workspace[stage])
    taken = zip(tables.limits, tables.held, workspace, strict=True)
    return [limits[-1] - held - most for limits, held, most in taken]


def _left(tables: Tables, caps: list[int]) -> list[int]:
    """What is left of it with as many micro-batches of each stage; below 0: it lacks."""
    left = _room(tables)
    for stage, lane in enumerate(tables.lane_of):
        left[lane] -= tables.while_live[stage] + caps[stage] * tables.each[stage]
    return left


def _as_memory_allows(tables: Tables) -> Iterator[list[int]]:
    """What stages hold in the fastest steady state that has room on each device; and as many more as fit.

    Nothing where one micro-batch of each stage is too much.
    """
    stages = range(len(tables.forward))
    there = [dict(before) for before in tables.before]
    after = [[(other, ns + there[other][stage]) for other, ns in tables.after[stage]] for stage in stages]
    own = [a + b for a, b in zip(tables.forward, tables.backward, strict=True)]
    holders = [
        Holder(way * tables.count, tables.count, tables.each[stage], tables.while_live[stage])
        for stage, way in enumerate(ways_down_ns(after, own))
    ]
    hosted = [[s for s in stages if tables.lane_of[s] == lane] for lane in range(len(tables.held))]
    load = max(sum(own[s] for s in lane) * tables.count for lane in hosted)
    steady = steady_ns([[holders[s] for s in lane] for lane in hosted], _room(tables), load)
    if steady is None:
        return
    caps = [holder.held(steady) for holder in holders]
    yield caps
    more, left = list(caps), _left(tables, caps)
    grown = True
    while grown:
        grown = False
        for stage in sorted(stages, key=lambda s: (more[s] / holders[s].way_ns if holders[s].way_ns else 0.0, s)):
            lane = tables.lane_of[stage]
            if tables.each[stage] and tables.each[stage] <= left[lane] and more[stage] < tables.count:
                more[stage] += 1
                left[lane] -= tables.each[stage]
                grown = True
    yield more


class Waits(NamedTuple):
    """Messages as rows, shape (rows, 4): who sends, its ns, its link, who waits for it.

    first: the first row of what the tasks of each kind (backwards, forwards) and stage wait for, shape
    (2, stages + 1). sent_first, sent: in the same way the rows that each stage sends.
    """

    first: IntArray
    rows: IntArray
    sent_first: IntArray
    sent: IntArray


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
            *tables.waits,
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
    first: IntArray,
    rows: IntArray,
    sent_first: IntArray,
    sent: IntArray,
) -> int:
    """Run `count` micro-batches greedily; return how many tasks ran: fewer than there are where a limit is passed.

    Of all that can start first the smaller kind goes first, then the smaller micro-batch, then the later stage.
    tasks: (kind, stage, micro-batch) in the order in which they start; not written where it has no rows.
    free: by lane, when its last task ends. peak: bytes by lane; without micro-batches at first. most_bytes: by
    lane. most_ns: of the end of each task that must follow. duration: shape (kinds, stages). The rest: `Waits`.
    """
    kinds, stages = duration.shape
    releases = WEIGHT if kinds > WEIGHT else BACK
    lanes = len(free)
    hosted, lane_first = _hosted(lane_of, lanes)
    tail = _tails(duration, rows, sent_first, sent) if most_ns < ANY else np.zeros_like(duration)
    used, left = peak.copy(), np.zeros(lanes, np.int64)
    for at in range(stages):
        for each in range(kinds):
            left[lane_of[at]] += count * duration[each, at]
    done = np.zeros((kinds, stages), np.int64)
    arrived = np.zeros((len(rows), count), np.int64)
    link_free = np.zeros(lanes * lanes, np.int64)
    # What each lane would run next: kind (STALE: to be found out again, WAITS: nothing), stage and start.
    next_kind = np.full(lanes, STALE, np.int64)
    next_stage, next_start = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    total: int = kinds * stages * count
    for turn in range(total):
        lane, kind, stage, start, number = -1, -1, -1, 0, 0
        for here in range(lanes):
            if next_kind[here] == STALE:
                next_kind[here] = WAITS
                for each in range(kinds):
                    for place in range(lane_first[here], lane_first[here + 1]):
                        at = hosted[place]
                        ran = done[each, at]
                        if (
                            ran == count
                            or (each == AHEAD and ran - done[releases, at] >= caps[at])
                            or (each == BACK and ran >= done[AHEAD, at])
                            or (each == WEIGHT and ran >= done[BACK, at])
                        ):
                            continue
                        ready = free[here]
                        if each != WEIGHT:
                            for row in range(first[each, at], first[each, at + 1]):
                                if done[each, rows[row, 0]] <= ran:
                                    ready = WAITS
                                    break
                                ready = max(ready, arrived[row, ran])
                        if ready == WAITS:
                            continue
                        chosen = next_kind[here]
                        if (
                            chosen == WAITS
                            or ready < next_start[here]
                            or (
                                ready == next_start[here] and each == chosen and ran < done[each, next_stage[here]]
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
        if kind != WEIGHT:
            for place in range(sent_first[kind, stage], sent_first[kind, stage + 1]):
                row = sent[place]
                there, link = free[lane], rows[row, 2]
                if link >= 0:
                    there = max(there, link_free[link])
                    link_free[link] = there + rows[row, 1]
                arrived[row, number] = there + rows[row, 1]
                next_kind[lane_of[rows[row, 3]]] = STALE
    return total


@kernel
def _tails(duration: IntArray, rows: IntArray, sent_first: IntArray, sent: IntArray) -> IntArray:
    """The least ns from the end of each kind of task of a stage to the end of all that waits for it."""
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
