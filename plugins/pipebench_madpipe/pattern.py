"""What a periodic schedule of a plan must obey: operations, arcs, resources and memory."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.chains.one_f_one_b_star import placed_schedule, transfers_of
from pipebench.algorithms.planning import memory_limits
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench.domain.topology import topological_order


class PeriodicConstraints(NamedTuple):
    """Constraints on n operations of micro-batch 0 at unknown instants t.

    Every other micro-batch is shifted by whole periods T.

    duration: ns, shape (n,). At least 1 on a shared device, so that the order is defined.
    resource: the device or link that each operation occupies, -1 for none, shape (n,).
    arc_from, arc_to, arc_ns, arc_periods: arc i says t[arc_to] - t[arc_from] >= arc_ns + arc_periods x T.
    lane_start: shared device d runs the stages lane_start[d] … lane_start[d + 1] - 1.
    lane_forward, lane_backward: the operations of each of these stages.
    lane_each: bytes that each of these stages adds for each live micro-batch.
    event_lane, event_operation, event_room: when event_operation[e] starts on device event_lane[e], the live
        micro-batches must fit in event_room[e] bytes.

    A device with one stage needs no event: an arc limits how long a micro-batch lives.
    """

    duration: IntArray
    resource: IntArray
    arc_from: IntArray
    arc_to: IntArray
    arc_ns: IntArray
    arc_periods: IntArray
    lane_start: IntArray
    lane_forward: IntArray
    lane_backward: IntArray
    lane_each: IntArray
    event_lane: IntArray
    event_operation: IntArray
    event_room: IntArray


def busiest_ns(pattern: PeriodicConstraints) -> int:
    """Busy ns in each period of the busiest device or link, at least 1."""
    return largest_load(pattern.duration.tolist(), pattern.resource.tolist())


def largest_load(duration: Sequence[int], resource: Sequence[int]) -> int:
    """The same as busiest_ns, from lists. Resource -1 is none."""
    loads: dict[int, int] = {}
    for one, lasts in zip(resource, duration, strict=True):
        loads[one] = loads.get(one, 0) + lasts
    return max([1, *(load for one, load in loads.items() if one >= 0)])


Operation = tuple[str, int, int]
"""Kind F or B, stage, and for a transfer the stage that it goes to, else -1."""


@dataclass(frozen=True, slots=True)
class PlanPattern:
    """The constraints of a plan.

    operations: what each operation of the pattern is.
    row_ns: the sum of all durations.
    """

    operations: tuple[Operation, ...]
    pattern: PeriodicConstraints
    row_ns: int


@dataclass(slots=True)
class _Arcs:
    rows: list[tuple[int, int, int, int]]

    def add(self, a: int, b: int, ns: int, periods: int = 0) -> None:
        self.rows.append((a, b, ns, periods))


def plan_pattern(model: CostModel, plan: Plan, within_reserve: bool = True) -> PlanPattern:
    """The constraints on a periodic schedule of a plan in the async regime.

    Source: MadPipe section 4.3, for any graph of stages.

    Memory is that of CostModel, within the memory of each device less the reserve, or within all of it. The
    transfers between two stages are one operation. Links behave as the cluster's link mode says.

    Raises UnsupportedProblem (sync, different micro-batches, k > 1) and InfeasibleProblem for devices that cannot
    hold one micro-batch.
    """
    if model.problem.regime.mode != "async":
        raise UnsupportedProblem("a periodic schedule never flushes: it is for the async regime only")
    if len({stage.micro_batch for stage in plan.stages}) > 1:
        raise UnsupportedProblem("a periodic schedule needs one micro-batch size; the stages of this plan differ")
    if any(stage.k != 1 for stage in plan.stages):
        raise UnsupportedProblem("a periodic schedule runs one forward, then one backward; this plan has k > 1")
    operations, duration, hops = _operations(model, plan)
    number = {operation: i for i, operation in enumerate(operations)}
    lanes, lane_of = lanes_of(plan)
    shared = [lane_of.count(lane) > 1 for lane in range(len(lanes))]
    for i, (_, stage, target) in enumerate(operations):
        if target < 0 and shared[lane_of[stage]]:
            duration[i] = max(1, duration[i])
    arcs = _Arcs([])
    after: list[list[int]] = [[] for _ in operations]
    for a, b in _dependencies(model, plan, number, hops):
        after[a].append(b)
        arcs.add(a, b, duration[a])
    resource = _resources(model, operations, duration, lane_of)
    busiest = largest_load(duration, resource.tolist())
    _hold_together(arcs, after, duration, busiest)
    memory = _Memory(model, plan, -1 if not within_reserve else 0)
    _limit_live(plan, number, duration, arcs, memory, _longest_life(duration, busiest))
    columns = np.array(arcs.rows, np.int64).reshape(-1, 4).T
    pattern = PeriodicConstraints(
        np.array(duration, np.int64),
        resource,
        *(np.ascontiguousarray(column) for column in columns),
        *_events(plan, number, lane_of, shared, memory),
    )
    return PlanPattern(tuple(operations), pattern, sum(duration))


def periodic_schedule(found: PlanPattern, instants: IntArray, period: int) -> PeriodicSchedule:
    """The schedule in which operation i of micro-batch 0 starts at instants[i]."""
    placed = [(kind, a, b, int(at)) for (kind, a, b), at in zip(found.operations, instants, strict=True)]
    runs = [(stage, kind, at) for kind, stage, target, at in placed if target < 0]
    sends = [(source, target, kind, at) for kind, source, target, at in placed if target >= 0]
    return placed_schedule(period, runs, sends)


def _operations(
    model: CostModel, plan: Plan
) -> tuple[list[Operation], list[int], dict[tuple[int, int], tuple[int, int]]]:
    """The operations, their durations, and ns forward and backward of the transfers from stage to stage."""
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    hops = {
        (t.source, t.target): (t.forward_ns, t.backward_ns)
        for t in transfers_of(model, plan, model.messages(plan))
    }
    operations: list[Operation] = [(FORWARD, stage, -1) for stage in range(len(times))]
    operations += [(BACKWARD, stage, -1) for stage in range(len(times))]
    duration = [time.forward for time in times] + [time.backward for time in times]
    _, lane_of = lanes_of(plan)
    for (before, behind), (there, back) in hops.items():
        if lane_of[before] != lane_of[behind]:
            operations += [(FORWARD, before, behind), (BACKWARD, behind, before)]
            duration += [there, back]
    return operations, duration, hops


def _dependencies(
    model: CostModel,
    plan: Plan,
    number: dict[Operation, int],
    hops: dict[tuple[int, int], tuple[int, int]],
) -> list[tuple[int, int]]:
    found = [(number[FORWARD, s, -1], number[BACKWARD, s, -1]) for s in range(len(plan.stages))]
    for before, behind in sorted(set(stage_edges(model.graph, plan)) | set(hops)):
        for kind, source, target in ((FORWARD, before, behind), (BACKWARD, behind, before)):
            ends = number[kind, source, -1], number[kind, target, -1]
            sent = number.get((kind, source, target))
            found += [ends] if sent is None else [(ends[0], sent), (sent, ends[1])]
    return found


def _hold_together(arcs: _Arcs, after: Sequence[Sequence[int]], duration: Sequence[int], busiest: int) -> None:
    """Bound the distance of every two operations; this loses nothing.

    An operation that starts a period after all that precede it can move earlier. In a chain that holds for
    neighbours, so one buffer is enough between two stages on one device.
    """
    order = topological_order(after, [str(i) for i in range(len(after))])
    if all(b in after[a] for a, b in pairwise(order)):
        for a, b in pairwise(order):
            arcs.add(b, a, 1 - duration[a], -1)
        return
    periods = _longest_life(duration, busiest)
    for b in range(1, len(after)):
        arcs.add(b, 0, 0, -periods)
        arcs.add(0, b, 0, -periods)


def _longest_life(duration: Sequence[int], busiest: int) -> int:
    """The most periods that a micro-batch lives.

    Each operation waits less than one period and spans those that its duration takes.
    """
    return len(duration) + -(-sum(duration) // max(busiest, 1))


class _Memory:
    """What the stages of a plan hold, and the room on their devices."""

    def __init__(self, model: CostModel, plan: Plan, limit: int) -> None:
        edges = model.messages(plan)
        self.of_stage = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
        self.limit = [memory_limits(model.problem, stage.devices)[limit] for stage in plan.stages]
        _, lane_of = lanes_of(plan)
        held: dict[int, int] = defaultdict(int)
        for lane, memory in zip(lane_of, self.of_stage, strict=True):
            held[lane] += memory.held + memory.while_live
        self.room = [self.limit[i] - held[lane] - self.of_stage[i].workspace for i, lane in enumerate(lane_of)]
        for position, memory in enumerate(self.of_stage):
            over = memory.per_micro_batch - self.room[position]
            if over > 0:
                raise InfeasibleProblem(
                    f"with one micro-batch of stage {position} in flight devices "
                    f"{list(plan.stages[position].devices)} need {over} bytes more than they have",
                    "cut the stages that they run into smaller ones, or use a smaller micro-batch",
                )


def _limit_live(
    plan: Plan,
    number: dict[Operation, int],
    duration: Sequence[int],
    arcs: _Arcs,
    memory: _Memory,
    longest: int,
) -> None:
    """Limit the periods that a micro-batch lives in a stage, by its in_flight and by the memory of its devices.

    A limit above the longest life has no effect. Times a period in ns it would leave 64 bits.
    """
    for position, stage in enumerate(plan.stages):
        limits = []
        if stage.in_flight:
            limits.append(max(1, stage.in_flight // stage.micro_batch))
        if memory.of_stage[position].per_micro_batch:
            limits.append(memory.room[position] // memory.of_stage[position].per_micro_batch)
        if limits:
            forward, backward = number[FORWARD, position, -1], number[BACKWARD, position, -1]
            arcs.add(backward, forward, duration[backward], -min(longest, *limits))


def _resources(
    model: CostModel, operations: Sequence[Operation], duration: Sequence[int], lane_of: Sequence[int]
) -> IntArray:
    mode = model.problem.cluster.link_mode
    numbers: dict[tuple[int, ...], int] = {}
    found = np.full(len(operations), -1, np.int64)
    for i, (_, stage, target) in enumerate(operations):
        if target < 0:
            found[i] = numbers.setdefault((lane_of[stage],), len(numbers))
        elif duration[i] > 0 and mode != "delay":
            link = (lane_of[stage], lane_of[target])
            found[i] = numbers.setdefault(link if mode == "full" else (min(link), max(link)), len(numbers))
    return found


def _events(
    plan: Plan, number: dict[Operation, int], lane_of: Sequence[int], shared: Sequence[bool], memory: _Memory
) -> tuple[IntArray, ...]:
    """lane_start, lane_forward, lane_backward, lane_each, event_lane, event_operation, event_room."""
    start = [0]
    inside: list[int] = []
    events: list[tuple[int, int, int]] = []
    for lane in (lane for lane, several in enumerate(shared) if several):
        stages = [position for position in range(len(plan.stages)) if lane_of[position] == lane]
        for position in stages:
            kinds = (FORWARD, BACKWARD) if memory.of_stage[position].workspace else (FORWARD,)
            events += [(len(start) - 1, number[kind, position, -1], memory.room[position]) for kind in kinds]
        inside += stages
        start.append(len(inside))
    columns = np.array(events, np.int64).reshape(-1, 3).T
    return (
        np.array(start, np.int64),
        np.array([number[FORWARD, position, -1] for position in inside], np.int64),
        np.array([number[BACKWARD, position, -1] for position in inside], np.int64),
        np.array([memory.of_stage[position].per_micro_batch for position in inside], np.int64),
        *(np.ascontiguousarray(column) for column in columns),
    )
