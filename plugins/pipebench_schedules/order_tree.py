"""Branch and bound over the orders of tasks on lanes: nodes, bounds, and what need not be looked at.

In every stage tasks of a kind run in the order of micro-batches: these are alike, so that renaming them in the
order in which they run makes no wait longer and no memory larger.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench.domain.schedule import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from pipebench_schedules.finite_tasks import JobShop

PRIORITY = {BACKWARD: 0, INPUT_GRADIENT: 0, FORWARD: 1, WEIGHT_GRADIENT: 2}
KEPT = 16
"""Of each set of tasks that have run, so many of the ways to run them are compared with later ones."""
Orders = tuple[tuple[int, ...], ...]
"""By lane the numbers of its tasks."""


class Spent(Exception):
    """The limit of nodes or the time is reached."""


@dataclass(frozen=True, slots=True)
class Node:
    """A beginning of every lane.

    ends: by task when it ends, -1 for tasks that have not run. free: by lane when it is free.
    waiting: by lane a task that is next on it although its inputs have not run, -1 none.
    bytes: by lane. live: by stage its micro-batches. barred: stages whose forward is not next on its lane.
    """

    orders: Orders
    ends: tuple[int, ...]
    free: tuple[int, ...]
    waiting: tuple[int, ...]
    bytes: tuple[int, ...]
    live: tuple[int, ...]
    barred: frozenset[int]


class Waits(NamedTuple):
    """A job shop in arrays. first: by task the first row of other, ns: what it waits for (`JobShop.before`)."""

    lane: IntArray
    duration: IntArray
    tail: IntArray
    reduce: IntArray
    first: IntArray
    other: IntArray
    ns: IntArray

    @classmethod
    def of(cls, shop: JobShop) -> "Waits":
        """Those of a job shop."""
        rows = [row for before in shop.before for row in before]
        first = list(accumulate(map(len, shop.before), initial=0))
        by_task = shop.lane, shop.duration, shop.tail
        columns = *by_task, shop.reduce, first, [other for other, _ in rows], [ns for _, ns in rows]
        return cls(*(np.array(column, np.int64) for column in columns))


class OrderTree:
    """Orders of one plan that fit in memory and take less than `best_ns`.

    limit: which of the shop's memory limits holds. any_order: every order is looked at, as contended links need:
    an earlier message may delay another. Else only those in which no task could run earlier in a gap, and of two
    beginnings with the same tasks the one in which no task that is left can start later.
    length(orders): nanoseconds of complete orders, None for one that is not valid. count(): called for each node,
    raises Spent.
    """

    def __init__(
        self,
        shop: JobShop,
        limit: int,
        any_order: bool,
        length: Callable[[Orders], int | None],
        count: Callable[[], None],
    ) -> None:
        self._shop, self._any_order, self._waits = shop, any_order, Waits.of(shop)
        self._length, self._count = length, count
        self._limits = [limits[limit] for limits in shop.limits]
        self._releases = WEIGHT_GRADIENT if WEIGHT_GRADIENT in shop.kind else BACKWARD
        self._roomy = [self._holds_all(lane) for lane in range(len(shop.stages))]
        self._seen: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
        self.best: Orders | None = None
        self.best_ns = 0

    def search(self, below_ns: int) -> None:
        """Leaves the fastest orders below that in `best`. Raises Spent: `best` is what was found so far."""
        shop = self._shop
        self.best, self.best_ns = None, below_ns
        lanes = len(shop.stages)
        root = Node(
            orders=((),) * lanes,
            ends=(-1,) * len(shop.kind),
            free=(0,) * lanes,
            waiting=(-1,) * lanes,
            bytes=shop.held,
            live=(0,) * len(shop.rows),
            barred=frozenset(),
        )
        if all(held <= limit for held, limit in zip(shop.held, self._limits, strict=True)):
            self._branch(root)

    def bound(self) -> int:
        """What no order is below."""
        return self._heads((-1,) * len(self._shop.kind), (0,) * len(self._shop.stages))[1]

    def _holds_all(self, lane: int) -> bool:
        """Whether a lane could keep all micro-batches of all its stages at once."""
        shop = self._shop
        most = shop.held[lane] + max((shop.memory[stage].workspace for stage in shop.stages[lane]), default=0)
        for stage in shop.stages[lane]:
            most += shop.memory[stage].while_live + len(shop.rows[stage][FORWARD]) * shop.memory[stage].each
        return most <= self._limits[lane]

    def _branch(self, node: Node) -> None:
        self._count()
        heads, least = self._heads(node.ends, node.free)
        if least >= self.best_ns:
            return
        if all(end >= 0 for end in node.ends):
            taken = self._length(node.orders)
            if taken is not None and taken < self.best_ns:
                self.best, self.best_ns = node.orders, taken
            return
        if not self._any_order and self._worse(node, heads):
            return
        for child in self._children(node, heads):
            self._branch(child)

    def _children(self, node: Node, heads: list[int]) -> Iterator[Node]:
        shop = self._shop
        if self._any_order:
            open_lanes = [
                lane for lane in range(len(shop.stages)) if node.waiting[lane] < 0 and self._left(node, lane)
            ]
            if not open_lanes:
                return  # every lane waits for a task that stands behind another
            lane = min(open_lanes, key=lambda each: node.free[each])
            tasks = list(self._next(node, lane))
            for task in sorted(tasks, key=lambda task: self._turn(task, heads)):
                yield self._appended(node, task)
            return
        ready = [
            task
            for lane in range(len(shop.stages))
            for task in self._next(node, lane)
            if self._known(node, task) and not (shop.kind[task] == FORWARD and shop.stage[task] in node.barred)
        ]
        if not ready:
            return
        first = min(ready, key=lambda task: (heads[task] + shop.duration[task], self._turn(task, heads)))
        lane, until = shop.lane[first], heads[first] + shop.duration[first]
        here = [task for task in ready if shop.lane[task] == lane and (heads[task] < until or task == first)]
        for task in sorted(here, key=lambda task: self._turn(task, heads)):
            yield self._appended(node, task)
        if shop.kind[first] == FORWARD and not self._roomy[lane]:
            # Or the lane waits until then and another task is next, whose memory `first` would take.
            yield Node(
                orders=node.orders,
                ends=node.ends,
                free=tuple(max(at, until) if each == lane else at for each, at in enumerate(node.free)),
                waiting=node.waiting,
                bytes=node.bytes,
                live=node.live,
                barred=node.barred | {shop.stage[first]},
            )

    def _turn(self, task: int, heads: list[int]) -> tuple[int, int, int, int]:
        shop = self._shop
        return heads[task], PRIORITY[shop.kind[task]], shop.micro_batch[task], -shop.stage[task]

    def _left(self, node: Node, lane: int) -> bool:
        shop = self._shop
        return any(node.ends[row[-1]] < 0 for stage in shop.stages[lane] for row in shop.rows[stage].values())

    def _next(self, node: Node, lane: int) -> Iterator[int]:
        """The next task of each stage and kind of a lane.

        It is there where memory, what its stage may have in flight and the order inside the stage allow it.
        """
        shop = self._shop
        for stage in shop.stages[lane]:
            memory = shop.memory[stage]
            for kind, row in shop.rows[stage].items():
                task = next((each for each in row if node.ends[each] < 0), None)
                if task is None or (kind == FORWARD and node.live[stage] == shop.most_live[stage]):
                    continue
                if any(
                    shop.lane[other] == lane and shop.stage[other] == stage and node.ends[other] < 0
                    for other, _ in shop.before[task]
                ):
                    continue
                needs = node.bytes[lane] + memory.workspace
                if kind == FORWARD:
                    needs += memory.each + (memory.while_live if node.live[stage] == 0 else 0)
                if needs <= self._limits[lane]:
                    yield task

    def _known(self, node: Node, task: int) -> bool:
        """Whether all that a task waits for has run."""
        return all(node.ends[other] >= 0 for other, _ in self._shop.before[task])

    def _appended(self, node: Node, task: int) -> Node:
        """The node with one more task on its lane; with those that waited for it."""
        shop, lane, stage = self._shop, self._shop.lane[task], self._shop.stage[task]
        orders, ends, free, waiting = list(node.orders), list(node.ends), list(node.free), list(node.waiting)
        orders[lane] = (*orders[lane], task)
        bytes_, live = list(node.bytes), list(node.live)
        barred = node.barred.difference(shop.stages[lane])
        memory = shop.memory[stage]
        if shop.kind[task] == FORWARD:
            bytes_[lane] += memory.each + (memory.while_live if live[stage] == 0 else 0)
            live[stage] += 1
        elif shop.kind[task] == self._releases:
            live[stage] -= 1
            bytes_[lane] -= memory.each + (memory.while_live if live[stage] == 0 else 0)
        waiting[lane] = task
        moved = True
        while moved:
            moved = False
            for at, next_task in enumerate(waiting):
                if next_task < 0 or any(ends[other] < 0 for other, _ in shop.before[next_task]):
                    continue
                start = max([free[at], *(ends[other] + ns for other, ns in shop.before[next_task])])
                ends[next_task] = free[at] = start + shop.duration[next_task]
                waiting[at] = -1
                moved = True
        return Node(tuple(orders), tuple(ends), tuple(free), tuple(waiting), tuple(bytes_), tuple(live), barred)

    def _heads(self, ends: tuple[int, ...], free: tuple[int, ...]) -> tuple[list[int], int]:
        """See `heads_and_least`."""
        heads, least = heads_and_least(np.array(ends, np.int64), np.array(free, np.int64), self._waits)
        return heads.tolist(), int(least)

    def _worse(self, node: Node, heads: list[int]) -> bool:
        """Whether the same tasks have run before in a way in which nothing that is left could start later."""
        shop = self._shop
        left = tuple(end < 0 for end in node.ends)
        ended = max(
            (at + shop.reduce[lane] for lane, at in enumerate(node.free) if not self._left(node, lane)),
            default=0,
        )
        times = (ended, *(heads[task] for task, open_ in enumerate(left) if open_))
        others = self._seen.setdefault((left, node.barred), [])
        if any(all(a <= b for a, b in zip(other, times, strict=True)) for other in others):
            return True
        if len(others) < KEPT:
            others.append(times)
        return False


@kernel
def heads_and_least(ends: IntArray, free: IntArray, waits: Waits) -> tuple[IntArray, int]:
    """By task when it can start at the earliest, 0 for tasks that have run; and what no completion is below.

    That follows from paths, and from lanes that run one task after the other.
    """
    heads, done = np.zeros(len(ends), np.int64), ends.copy()
    least, left = (free + waits.reduce).max(), 0
    for task in range(len(ends)):
        if ends[task] >= 0:
            continue
        start = free[waits.lane[task]]
        for row in range(waits.first[task], waits.first[task + 1]):
            start = max(start, done[waits.other[row]] + waits.ns[row])
        heads[task], done[task] = start, start + waits.duration[task]
        least = max(least, done[task] + waits.tail[task])
        left += 1
    later = np.empty(left, np.int64)
    for task in range(len(ends)):
        if ends[task] < 0:
            left -= 1
            later[left] = task
    work, tail = np.zeros(len(free), np.int64), np.full(len(free), -1, np.int64)
    for at in np.argsort(-heads[later], kind="mergesort"):
        task = later[at]
        lane = waits.lane[task]
        work[lane] += waits.duration[task]
        tail[lane] = waits.tail[task] if tail[lane] < 0 else min(tail[lane], waits.tail[task])
        least = max(least, heads[task] + work[lane] + tail[lane])
    return heads, least
