"""Greedy list scheduling (Graham 1969): whenever a device is free, it runs what it can start first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from pipebench.algorithms.planning import memory_limits
from pipebench.algorithms.steady_memory import Holder, steady_ns, ways_down_ns
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.plugin import GreedyOptions
from pipebench_schedules.shared_lanes import Order, equal_micro_batches, shared_lane

MOST_LOOKED_AT = 2**21
"""Stages looked at in all orders that are tried; it counts, so that the answer does not depend on the machine."""
PRIORITY = {BACKWARD: 0, INPUT_GRADIENT: 0, FORWARD: 1, WEIGHT_GRADIENT: 2}


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """The fastest of several greedy orders that fits in memory, by a clock without contention on links.

    Of the tasks of a device that can start first, a backward goes before a forward and this before a weight
    gradient; of equal ones the smaller micro-batch and then the later stage. The orders differ in how many
    micro-batches a stage keeps in flight (as many as stages follow it, one more, twice as many, any number, half
    as many, one; not more than `live` allows) and in whether weight gradients are tasks of their own, which fill
    waits.

    The one with the smallest excess where none fits. Raises UnsupportedProblem where stages differ in micro-batch
    and where there are more tasks than can be listed.
    """
    count = equal_micro_batches(problem, plan, "greedy")
    options = context.options
    assert isinstance(options, GreedyOptions)
    tables = _tables(problem, plan, count)
    most = most_live(options.live, len(tables.held)) if options.live else count
    looks = 2 * len(plan.stages) ** 2 * count
    if looks > MOST_LOOKED_AT:
        raise UnsupportedProblem(
            f"greedy looks at {MOST_LOOKED_AT} stages at most, this plan would take {looks}",
            "use a larger micro-batch or fewer stages",
        )
    tried = list(_tried(tables, min(most, count)))[: max(1, MOST_LOOKED_AT // (2 * looks))]
    context.count("orders", len(tried))
    best = min((_Run(tables, caps, split).done() for caps, split in tried), key=lambda run: run.rank)
    return FiniteSchedule(
        lanes=tuple(
            shared_lane(problem, plan, [s for s, at in enumerate(tables.lane_of) if at == lane], order)
            for lane, order in enumerate(best.orders)
        )
    )


def most_live(live: float, devices: int) -> int:
    """Whole micro-batches in `live` times the devices, at least 1; live: the decimal that it prints as."""
    return max(1, int(Decimal(str(live)) * devices))


@dataclass(frozen=True, slots=True)
class _Tables:
    """A plan in numbers, by stage. before, after: neighbours with the ns of a message from or to them.

    follow: stages on the longest path to the end, itself included. held: bytes of a lane without micro-batches.
    limits: bytes that each lane may use, less the reserve first.
    """

    count: int
    forward: list[int]
    backward: list[int]
    weight: list[int]
    reduce: list[int]
    before: list[list[tuple[int, int]]]
    after: list[list[tuple[int, int]]]
    follow: list[int]
    lane_of: list[int]
    each: list[int]
    while_live: list[int]
    workspace: list[int]
    held: list[int]
    limits: list[tuple[int, ...]]


def _tables(problem: Problem, plan: Plan, count: int) -> _Tables:
    model = CostModel(problem)
    edges = model.messages(plan)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    memory = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
    lanes, lane_of = lanes_of(plan)
    there: dict[tuple[int, int], int] = {}
    back: dict[tuple[int, int], int] = {}
    for message in edges:
        pair = message.source, message.target
        there[pair] = max(there.get(pair, 0), model.message_ns(plan, message))
        back[pair] = max(back.get(pair, 0), model.message_ns(plan, message, backward=True))
    before: list[list[tuple[int, int]]] = [[] for _ in plan.stages]
    after: list[list[tuple[int, int]]] = [[] for _ in plan.stages]
    for source, target in sorted(set(stage_edges(model.graph, plan)) | set(there)):
        before[target].append((source, there.get((source, target), 0)))
        after[source].append((target, back.get((source, target), 0)))
    held = [0] * len(lanes)
    for lane, each in zip(lane_of, memory, strict=True):
        held[lane] += each.held
    return _Tables(
        count=count,
        forward=[each.forward for each in times],
        backward=[each.backward for each in times],
        weight=[each.weight_gradient for each in times],
        reduce=[each.all_reduce for each in times],
        before=before,
        after=after,
        follow=_follow(after),
        lane_of=lane_of,
        each=[each.per_micro_batch for each in memory],
        while_live=[each.while_live for each in memory],
        workspace=[each.workspace for each in memory],
        held=held,
        limits=[memory_limits(problem, devices) for devices in lanes],
    )


def _follow(after: list[list[tuple[int, int]]]) -> list[int]:
    """Stages on the longest path from each stage to the end."""
    longest = [1] * len(after)
    for _ in after:
        for stage, successors in enumerate(after):
            longest[stage] = max([1, *(1 + longest[successor] for successor, _ in successors)])
    return longest


def _tried(tables: _Tables, most: int) -> Iterator[tuple[list[int], bool]]:
    """Micro-batches in flight of each stage, `most` at most, and whether backwards are split."""
    caps = [
        tables.follow,
        [number + 1 for number in tables.follow],
        [2 * number for number in tables.follow],
        [most] * len(tables.follow),
        [-(-number // 2) for number in tables.follow],
        [1] * len(tables.follow),
    ]
    if not _fit(tables, [min(number, most) for number in tables.follow]):
        caps += _as_memory_allows(tables)
    distinct = list(dict.fromkeys(tuple(min(number, most) for number in each) for each in caps))
    for split in (False, True) if any(tables.weight) else (False,):
        for each in distinct:
            yield list(each), split


def _fit(tables: _Tables, caps: list[int]) -> bool:
    """Whether devices have room for as many micro-batches of each stage."""
    return min(_left(tables, caps)) >= 0


def _room(tables: _Tables) -> list[int]:
    """Bytes of each lane for micro-batches."""
    workspace = [0] * len(tables.held)
    for stage, lane in enumerate(tables.lane_of):
        workspace[lane] = max(workspace[lane], tables.workspace[stage])
    taken = zip(tables.limits, tables.held, workspace, strict=True)
    return [limits[-1] - held - most for limits, held, most in taken]


def _left(tables: _Tables, caps: list[int]) -> list[int]:
    """What is left of it with as many micro-batches of each stage; below 0: it lacks."""
    left = _room(tables)
    for stage, lane in enumerate(tables.lane_of):
        left[lane] -= tables.while_live[stage] + caps[stage] * tables.each[stage]
    return left


def _as_memory_allows(tables: _Tables) -> Iterator[list[int]]:
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


class _Run:
    """One greedy order. caps: the most micro-batches in flight, by stage. split: weight gradients are tasks."""

    def __init__(self, tables: _Tables, caps: list[int], split: bool) -> None:
        self._tables, self._caps = tables, caps
        stages = range(len(tables.forward))
        self._back = INPUT_GRADIENT if split else BACKWARD
        self._kinds = (self._back, FORWARD, WEIGHT_GRADIENT) if split else (self._back, FORWARD)
        self._ns = {
            FORWARD: tables.forward,
            BACKWARD: tables.backward,
            INPUT_GRADIENT: [whole - part for whole, part in zip(tables.backward, tables.weight, strict=True)],
            WEIGHT_GRADIENT: tables.weight,
        }
        self._done = {kind: [0] * len(stages) for kind in self._kinds}
        self._ends: dict[str, list[list[int]]] = {kind: [[] for _ in stages] for kind in (FORWARD, self._back)}
        self._releases = self._kinds[-1] if split else self._back
        self._free = [0] * len(tables.held)
        self._bytes, self._peak = list(tables.held), list(tables.held)
        self.orders: list[Order] = [[] for _ in tables.held]
        self._touched = [
            {other for other in stages if tables.lane_of[other] == tables.lane_of[stage]}
            | {other for other, _ in (*tables.before[stage], *tables.after[stage])}
            for stage in stages
        ]
        """For each stage those whose next tasks may start at another time once it has run one: also itself."""

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller is better: within the reserve, within memory, beyond it; then by time, beyond it by excess."""
        tables = self._tables
        for number in range(len(tables.limits[0])):
            if all(peak <= limits[number] for peak, limits in zip(self._peak, tables.limits, strict=True)):
                return number, self._makespan()
        excess = max(peak - limits[-1] for peak, limits in zip(self._peak, tables.limits, strict=True))
        return len(tables.limits[0]), excess

    def _makespan(self) -> int:
        ends = list(self._free)
        for stage, lane in enumerate(self._tables.lane_of):
            ends[lane] += self._tables.reduce[stage]
        return max(ends)

    def done(self) -> "_Run":
        """The same, once every task has run. The oldest micro-batch can always go on, so there is no deadlock."""
        stages = range(len(self._tables.forward))
        starts: dict[tuple[str, int], tuple[int, int, int, int, str]] = {}
        moved: Iterable[int] = stages
        for _ in range(len(self._kinds) * len(stages) * self._tables.count):
            for stage in moved:
                for kind in self._kinds:
                    start = self._start(kind, stage)
                    if start is None:
                        starts.pop((kind, stage), None)
                    else:
                        starts[kind, stage] = start, PRIORITY[kind], self._done[kind][stage], -stage, kind
            start, _, number, stage, kind = min(starts.values())
            self._run(kind, -stage, number, start)
            moved = self._touched[-stage]
        return self

    def _start(self, kind: str, stage: int) -> int | None:
        """When the next task of that kind could start; None while it waits for tasks that have not run."""
        tables, number = self._tables, self._done[kind][stage]
        if number == tables.count:
            return None
        ready = self._free[tables.lane_of[stage]]
        if kind == FORWARD:
            if number - self._done[self._releases][stage] >= self._caps[stage]:
                return None
            neighbours, own = tables.before[stage], None
        elif kind == WEIGHT_GRADIENT:
            neighbours, own = [], self._ends[self._back][stage]
        else:
            neighbours, own = tables.after[stage], self._ends[FORWARD][stage]
        if own is not None and len(own) <= number:
            return None
        for neighbour, message_ns in neighbours:
            ended = self._ends[kind][neighbour]
            if len(ended) <= number:
                return None
            ready = max(ready, ended[number] + message_ns)
        return ready

    def _run(self, kind: str, stage: int, number: int, start: int) -> None:
        tables, lane = self._tables, self._tables.lane_of[stage]
        end = start + self._ns[kind][stage]
        self._free[lane] = end
        self._done[kind][stage] += 1
        self.orders[lane].append((kind, stage, number))
        if kind != WEIGHT_GRADIENT:
            self._ends[kind][stage].append(end)
        live = self._done[FORWARD][stage] - self._done[self._releases][stage]
        if kind == FORWARD:
            self._bytes[lane] += tables.each[stage] + (tables.while_live[stage] if live == 1 else 0)
        self._peak[lane] = max(self._peak[lane], self._bytes[lane] + tables.workspace[stage])
        if kind == self._releases:
            self._bytes[lane] -= tables.each[stage] + (tables.while_live[stage] if live == 0 else 0)
