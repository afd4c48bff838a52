"""A periodic schedule run from a cold start, and its exact period, by running it or as a maximum cycle ratio."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pipebench.costs.formula import StageMemory
from pipebench.costs.model import CostModel
from pipebench.costs.placement import MOST_TURNS
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import B, F
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FORWARD, PeriodicSchedule
from pipebench.domain.trace import Trace
from pipebench.simulation.deadlock import Standstill
from pipebench.simulation.kernel import Instants, run_loop
from pipebench.simulation.network import FlowTable, flow_table
from pipebench.simulation.stages import StageTable, TaskTimes, stage_table
from pipebench.simulation.tasks import TaskTable, task_table
from pipebench.simulation.trace import build_trace
from pipebench.simulation.unroll import (
    first_lane,
    flow_order,
    kinds_of,
    link_orders,
    operation_order,
    transfers_of_flows,
    unrolled_tasks,
)


def maximum_cycle_ratio(tail: IntArray, head: IntArray, weight: IntArray, tokens: IntArray) -> Fraction:
    """The largest sum of weights / sum of tokens over all cycles; 0 when no cycle has a weight above zero.

    Arcs go from tail to head; all arrays have shape (arcs,); nodes are numbered from 0. The tokens of an arc may
    be negative, but those of a cycle must add up to at least 1.
    Method: start with ratio 0. While some cycle has more weight than the ratio times its tokens, take the ratio of
    that cycle (Burns 1991; Dasdan 2004, section 4.4). All numbers are integers.
    """
    order = np.argsort(head, kind="stable")
    tail, head, weight, tokens = tail[order], head[order], weight[order], tokens[order]
    ratio = Fraction(0)
    while True:
        length = weight * ratio.denominator - tokens * ratio.numerator
        cycle = _positive_cycle(tail, head, length)
        if cycle is None:
            return ratio
        ratio = Fraction(int(weight[cycle].sum()), int(tokens[cycle].sum()))


def _positive_cycle(tail: IntArray, head: IntArray, length: IntArray) -> list[int] | None:
    """The arcs of a cycle of positive length, or None, by longest paths (Bellman and Ford).

    Arcs: sorted by head.
    """
    nodes = int(max(tail.max(initial=-1), head.max(initial=-1))) + 1
    first = np.flatnonzero(np.diff(head, prepend=-1))
    reached = head[first]
    distance = np.zeros(nodes, np.int64)
    parent = np.full(nodes, -1, np.int64)
    for number in range(1, nodes + 1):
        candidate = distance[tail] + length
        best = np.maximum.reduceat(candidate, first) if len(first) else candidate
        longer = best > distance[reached]
        if not longer.any():
            return None
        # Of the arcs into a node the first one that is as long as the best.
        arcs = np.flatnonzero(candidate == np.repeat(best, np.diff(first, append=len(head))))
        chosen = arcs[np.flatnonzero(np.diff(head[arcs], prepend=-1))]
        parent[reached[longer]] = chosen[longer]
        distance[reached[longer]] = best[longer]
        if number & (number - 1) == 0 or number == nodes:
            cycle = _cycle_of_parents(tail, parent)
            if cycle is not None:
                return cycle
    raise AssertionError("longest paths grow for ever without a cycle")


def _cycle_of_parents(tail: IntArray, parent: IntArray) -> list[int] | None:
    """The arcs of a cycle among the arcs through which nodes were last reached."""
    seen = np.zeros(len(parent), np.int64)
    for start in range(len(parent)):
        node = start
        while parent[node] >= 0 and seen[node] == 0:
            seen[node] = start + 1
            node = int(tail[parent[node]])
        if parent[node] >= 0 and seen[node] == start + 1:
            arcs = [int(parent[node])]
            while int(tail[arcs[-1]]) != node:
                arcs.append(int(parent[tail[arcs[-1]]]))
            return arcs
    return None


MOST_CYCLES = 64


def steady_period(ends: IntArray, window: int, group: IntArray) -> int | None:
    """The period for one micro-batch in ns, rounded up, or None when the run has not settled.

    ends: end of each entry of the pattern in each repetition, shape (repetitions, entries).
    window: how many previous repetitions a repetition can depend on.
    group: number of the entries that depend on each other, shape (entries,). Each group has a pace of its own; the
    slowest counts.

    A run has settled when each of the last `window` repetitions ends p ns after the one `cycles` before it, in all
    entries of a group. A system of maxima and sums then repeats for ever, with p / cycles ns for a micro-batch,
    which need not be an integer (Baccelli, Cohen, Olsder and Quadrat 1992, section 3.7).
    """
    for cycles in range(1, min(MOST_CYCLES, len(ends) - window) + 1):
        gains = ends[-window:] - ends[-window - cycles : -cycles]
        settled = gains[-1]
        paces = np.full(int(group.max()) + 1, -1, np.int64)
        paces[group] = settled
        if (gains == settled).all() and (paces[group] == settled).all():
            return -(-int(paces.max()) // cycles)
    return None


def mean_period(ends: IntArray) -> int:
    """The mean period over the later half of the repetitions, rounded up.

    It is used for a run that has not settled.
    """
    last = ends.max(axis=1)
    middle = len(last) // 2
    return -(-int(last[-1] - last[middle]) // max(len(last) - 1 - middle, 1))


Arc = tuple[int, int, tuple[int, ...], int]
"""From one entry of the pattern to one that waits for it: entries, ns in each turn of the first one, and how many
periods lie between. One duration stands for all turns."""


def exact_pace(schedule: PeriodicSchedule, order: IntArray, stages: StageTable, network: FlowTable) -> Fraction:
    """ns for one micro-batch in the long run, without ports. order: unroll.operation_order.

    Entries are operations and the flows that occupy links. Each entry waits for its inputs and for the entry in
    front of it on its lane or link. The pace is the maximum cycle ratio of these waits; every run settles to it,
    sooner or later (Baccelli, Cohen, Olsder and Quadrat 1992, theorem 3.28).

    Replicas in turn: the replicas of a stage wait in the same way, each one every r periods, so that the first
    stands for all. Where a transfer takes longer between some of them than between others, an entry is counted
    once for each micro-batch of a round, after which all stages are at their first replica again.
    Raises UnsupportedProblem for rounds of more than MOST_TURNS micro-batches.
    """
    arcs = [
        *_lane_arcs(schedule, order, stages),
        *_link_arcs(schedule, network),
        *_input_arcs(schedule, stages, network),
    ]
    tail, head, tokens = np.array([(tail, head, tokens) for tail, head, _, tokens in arcs], np.int64).T
    if all(len(set(lengths)) == 1 for _, _, lengths, _ in arcs):
        weight = np.array([lengths[0] for _, _, lengths, _ in arcs], np.int64)
        return maximum_cycle_ratio(tail, head, weight, tokens)
    together = math.lcm(*stages.turns.tolist())
    if together > MOST_TURNS:
        raise UnsupportedProblem(
            f"replicas in turn are all at their first one again after {together} micro-batches, at most "
            f"{MOST_TURNS} are computed where links between them differ",
            "choose numbers of replicas with a smaller common multiple",
        )
    weight = np.array([[lengths[turn % len(lengths)] for turn in range(together)] for _, _, lengths, _ in arcs])
    later = np.arange(together) + tokens[:, None]
    round_of = maximum_cycle_ratio(
        (tail[:, None] * together + np.arange(together)).ravel(),
        (head[:, None] * together + later % together).ravel(),
        weight.ravel(),
        (later // together).ravel(),
    )
    return round_of / together


def _ring(entries: list[int], weights: Sequence[tuple[int, ...]], shifts: list[int], turns: int) -> list[Arc]:
    """Each entry waits for the entry in front of it; the first waits for the last one, `turns` periods before.

    entries: in the order of one period. shifts: of each entry. With several turns an entry stands in one of as
    many periods, the one that its shift says.
    """
    ring = sorted(range(len(entries)), key=lambda position: shifts[position] % turns)
    arcs: list[Arc] = []
    for position, after in zip(ring, [*ring[1:], ring[0]], strict=True):
        tokens = shifts[after] % turns - shifts[position] % turns
        arcs.append((entries[position], entries[after], weights[position], tokens + turns * (after == ring[0])))
    return arcs


def _lane_arcs(schedule: PeriodicSchedule, order: IntArray, stages: StageTable) -> list[Arc]:
    stage = np.array(schedule.stage, np.int64)
    length = stages.duration[kinds_of(schedule), stage]
    lane = first_lane(stages, stage[order])
    arcs: list[Arc] = []
    for number in np.unique(lane):
        entries = order[lane == number].tolist()
        weights = [(int(length[entry]),) for entry in entries]
        shifts = [schedule.shift[entry] for entry in entries]
        arcs += _ring(entries, weights, shifts, int(stages.turns[schedule.stage[entries[0]]]))
    return arcs


def _link_arcs(schedule: PeriodicSchedule, network: FlowTable) -> list[Arc]:
    operations = len(schedule.kinds)
    transfer = transfers_of_flows(schedule, network)
    arcs: list[Arc] = []
    for flows in flow_order(schedule, network):
        if network.turn[flows[0]] > 0:  # as the first replicas
            continue
        shifts = [schedule.transfer_shift[transfer[flow]] for flow in flows]
        weights = [_lengths(network, int(flow), hop) for flow, hop in zip(flows, shifts, strict=True)]
        arcs += _ring((operations + flows).tolist(), weights, shifts, int(network.turns[flows[0]]))
    return arcs


def _lengths(network: FlowTable, flow: int, shift: int) -> tuple[int, ...]:
    """The ns of a transfer in each period; flow: of its first turn. In period k it sends number k - shift."""
    turns = int(network.turns[flow])
    return tuple(int(network.duration[flow + (period - shift) % turns]) for period in range(turns))


def _input_arcs(schedule: PeriodicSchedule, stages: StageTable, network: FlowTable) -> list[Arc]:
    kind = kinds_of(schedule).tolist()
    entry = {(stage, kind[position]): position for position, stage in enumerate(schedule.stage)}
    shift = schedule.shift
    arcs: list[Arc] = []
    for stage in range(len(stages.count)):
        ahead, back = entry[stage, F], entry[stage, B]
        arcs.append((ahead, back, (int(stages.duration[F, stage]),), shift[back] - shift[ahead]))
    for flow, transfer in enumerate(transfers_of_flows(schedule, network)):
        if network.turn[flow] > 0:
            continue
        passing = B if network.backward[flow] else F
        source, target = entry[int(network.sender[flow]), passing], entry[int(network.receiver[flow]), passing]
        length = int(stages.duration[passing, network.sender[flow]])
        if transfer < 0:
            lengths = tuple(length + sent for sent in _lengths(network, flow, shift[source]))
            arcs.append((source, target, lengths, shift[target] - shift[source]))
            continue
        between, hop = len(kind) + flow, schedule.transfer_shift[transfer]
        arcs.append((source, between, (length,), hop - shift[source]))
        arcs.append((between, target, _lengths(network, flow, hop), shift[target] - hop))
    return arcs


FIRST_RUNS = 16
MOST_TASKS = 1 << 20


def simulate_periodic(
    model: CostModel,
    plan: Plan,
    schedule: PeriodicSchedule,
    memory: Sequence[StageMemory],
    known: TaskTimes | None = None,
) -> Trace:
    """Unroll the pattern and run it from a cold start.

    Every lane and every link keeps the order of the pattern, and starts each task and message as soon as it can.
    So the period is at most the pattern's when the pattern is valid.

    period_ns is the period to which the run settles, rounded up. Without ports it is computed (exact_pace),
    because a run may need thousands of micro-batches to settle. Ports serve first come, first served; no exact
    pace is known for them. With ports the run is doubled until it has settled (steady_period) or has MOST_TASKS
    tasks and messages.
    In the latter case period_ns is the mean over its later half, or the exact pace without ports if that is
    longer.

    known: times of tasks that replace those of the cost model.
    Raises Deadlock, InvalidSchedule, and UnsupportedProblem for a sync regime or unequal micro-batches.
    """
    _check_supported(model, plan)
    lag = _span(schedule) + max(stage.turns for stage in plan.stages) - 1
    runs = FIRST_RUNS + 4 * lag
    while True:
        stages = stage_table(model, plan, runs * plan.stages[0].micro_batch, known)
        network = flow_table(model, plan, stages, queue_by_link=True)
        operations = operation_order(schedule, plan, stages, network)
        tasks = task_table(unrolled_tasks(schedule, operations, stages), stages)
        order = link_orders(schedule, network)
        instants = run_loop(stages, tasks, network, order)
        if instants.ended < len(tasks.lane):
            raise Standstill(stages, tasks, network, instants, order).error()
        pace = math.ceil(exact_pace(schedule, operations, stages, network))
        if network.ports:
            ends, group = _repetitions(schedule, stages, tasks, network, instants)
            settled = steady_period(ends, lag + 1, group)
            if settled is None and 2 * (len(tasks.lane) + network.messages) <= MOST_TASKS:
                runs *= 2
                continue
            pace = max(pace, mean_period(ends)) if settled is None else settled
        return build_trace(stages, tasks, network, instants, memory, pace)


def _check_supported(model: CostModel, plan: Plan) -> None:
    if model.problem.regime.mode == "sync":
        raise UnsupportedProblem(
            "a periodic schedule never flushes, and the regime is sync", "use a finite schedule or --regime async"
        )
    if len({stage.micro_batch for stage in plan.stages}) > 1:
        raise UnsupportedProblem("a periodic schedule needs the same micro-batch on all stages")


def _span(schedule: PeriodicSchedule) -> int:
    """Number of periods from the start to the end of the operations of one micro-batch."""
    shifts = (*schedule.shift, *schedule.transfer_shift)
    return max(shifts) - min(shifts) + 1


def _repetitions(
    schedule: PeriodicSchedule, stages: StageTable, tasks: TaskTable, network: FlowTable, instants: Instants
) -> tuple[IntArray, IntArray]:
    """Ends by repetition of the pattern, shape (repetitions, entries), and the connected parts of the entries.

    Repetition k holds micro-batch k - shift of every entry, so it depends on itself and earlier repetitions only.
    Repetitions that lack an entry are left out.
    """
    runs = int(stages.count[0])
    row_end = instants.start + tasks.duration
    transfer = transfers_of_flows(schedule, network)
    linked = np.flatnonzero((transfer >= 0) & (network.turn == 0))
    ends: list[IntArray] = []
    for stage, letter in zip(schedule.stage, schedule.kinds, strict=True):
        slot = int(stages.offset[stage]) + (0 if letter == FORWARD else stages.slots)
        ends.append(row_end[tasks.slot_row[slot : slot + runs]])
    for flow in linked:
        turn, position = np.arange(runs) % network.turns[flow], np.arange(runs) // network.turns[flow]
        ends.append(instants.arrived[network.base[flow + turn] + position])
    shift = np.array([*schedule.shift, *(schedule.transfer_shift[transfer[flow]] for flow in linked)])
    latest, earliest = int(shift.max()), int(shift.min())
    by_run = np.stack(ends, axis=1)
    rows = np.arange(latest, runs + earliest)[:, None] - shift
    parts = _parts(stages, network)
    owner = [*schedule.stage, *(int(network.sender[flow]) for flow in linked)]
    return by_run[rows, np.arange(len(shift))], parts[np.array(owner)]


def _parts(stages: StageTable, network: FlowTable) -> IntArray:
    """For each stage the number of its part of the plan. Stages joined by lanes or messages are in one part.

    Within a part everything depends on everything, because forwards and backwards run in opposite directions.
    """
    part = first_lane(stages, np.arange(len(stages.count)))
    for sender, receiver in zip(network.sender, network.receiver, strict=True):
        part[part == part[sender]] = part[receiver]
    return part
