"""1F1B*: the periodic schedule of a chain of stages, and its shortest period in memory (MadPipe section 4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.planning import memory_limits
from pipebench.costs.formula import ENDLESS, StageMemory
from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.defaults import scheduler_for
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.topology import topological_order


def oplus(delay: int, duration: int, period: int) -> int:
    """Delay behind an item of this duration, given the delay in front of it: x (+) y of MadPipe 4.2.2.

    x + y if that stays within the group of x (ends before the next multiple of the period), else the item
    opens a new group: period * ceil(x / period) + y. Monotone in both.
    """
    closed = -(-delay // period) * period
    return delay + duration if delay + duration <= closed else closed + duration


@kernel
def groups(items: IntArray, period: int) -> IntArray:
    """The group of each item, 1 for the last one; period must be at least the longest item.

    A group is filled from the end of the chain while its total stays within the period. A stage of group g
    has exactly g live micro-batches at its peak, the least that any pattern of this period needs (MadPipe,
    Proposition 1).
    """
    found = np.empty(len(items), np.int64)
    group, filled = 1, 0
    for i in range(len(items) - 1, -1, -1):
        if filled + items[i] <= period:
            filled += items[i]
        else:
            group += 1
            filled = items[i]
        found[i] = group
    return found


@kernel
def minimal_period(items: IntArray, most_live: IntArray) -> int:
    """The shortest period, in ns, at which stage i of the chain needs at most most_live[i] micro-batches.

    -1 when there is none, which means that some most_live is below 1. Groups only shrink when the period
    grows, so integer bisection between the longest item and the sum of all (where every group is 1) is
    exact; the result is the sum of some consecutive items, or 1 when every item is 0.
    """
    for live in most_live:
        if live < 1:
            return -1
    low, high = 1, 0
    for item in items:
        low, high = max(low, item), high + item
    high = max(1, high)
    while low < high:
        period = (low + high) // 2
        found = groups(items, period)
        fits = True
        for stage in range(len(most_live)):
            if found[2 * stage] > most_live[stage]:
                fits = False
                break
        if fits:
            high = period
        else:
            low = period + 1
    return int(high)


def start_times(forward: IntArray, backward: IntArray, period: int) -> tuple[list[int], list[int]]:
    """When each item's forward and backward of micro-batch 0 start under 1F1B*, in ns from its first forward.

    forward, backward: durations of the items, shape (2n - 1,). Forwards run one behind the other. The
    backwards of group g run in reverse order, one behind the other, from (g - 1) periods after the end of
    the group's last forward.
    """
    group = groups(forward + backward, period)
    ends = np.cumsum(forward)
    backward_start = [0] * len(group)
    instant = 0
    for i in range(len(group) - 1, -1, -1):
        if i == len(group) - 1 or group[i] != group[i + 1]:
            instant = int(ends[i]) + (int(group[i]) - 1) * period
        backward_start[i] = instant
        instant += int(backward[i])
    return [int(end - length) for end, length in zip(ends, forward, strict=True)], backward_start


Run = tuple[int, str, int]
"""Stage, kind (F or B), instant in ns at which micro-batch 0 starts."""
Send = tuple[int, int, str, int]
"""Source and target stage, kind, instant in ns."""


def placed_schedule(period: int, runs: Sequence[Run], sends: Sequence[Send]) -> PeriodicSchedule:
    """The schedule that repeats these operations and transfers every period (ns)."""
    return PeriodicSchedule(
        period_ns=period,
        stage=tuple(stage for stage, _, _ in runs),
        kinds="".join(kind for _, kind, _ in runs),
        start_ns=tuple(start % period for _, _, start in runs),
        shift=tuple(start // period for _, _, start in runs),
        source=tuple(source for source, _, _, _ in sends),
        target=tuple(target for _, target, _, _ in sends),
        transfer_kinds="".join(kind for _, _, kind, _ in sends),
        transfer_start_ns=tuple(start % period for _, _, _, start in sends),
        transfer_shift=tuple(start // period for _, _, _, start in sends),
    )


@dataclass(frozen=True, slots=True)
class Transfer:
    """All tensors from one stage to another: ns to send them, ns to send their gradients back."""

    source: int
    target: int
    forward_ns: int
    backward_ns: int


def chain_of_stages(model: CostModel, plan: Plan) -> list[int]:
    """The only order in which the stages can run.

    Raises UnsupportedProblem when data and order edges leave two stages unordered, or contradict the listed
    order of a relayed plan.
    """
    sent = model.messages(replace(plan, routing="direct"))
    pairs = {(m.source, m.target) for m in sent} | set(plan.order_edges)
    if plan.routing == "relay":
        backwards = sorted(pair for pair in pairs if pair[0] >= pair[1])
        if backwards:
            raise UnsupportedProblem(
                f"a relayed plan runs in the order listed, but stage {backwards[0][1]} waits for {backwards[0][0]}"
            )
        return list(range(len(plan.stages)))
    successors: list[list[int]] = [[] for _ in plan.stages]
    for before, after in sorted(pairs):
        successors[before].append(after)
    order = list(topological_order(successors, [f"stage {i}" for i in range(len(plan.stages))]))
    for before, after in pairwise(order):
        if (before, after) not in pairs:
            raise UnsupportedProblem(
                f"1F1B* needs the stages in a chain; nothing orders stages {before} and {after}",
                "give the plan order edges, or use a scheduler for stage graphs",
            )
    return order


def transfers_of(model: CostModel, plan: Plan, edges: Sequence[Message]) -> list[Transfer]:
    """One transfer for each pair of stages that exchange tensors, in order of source and target."""
    totals: dict[tuple[int, int], tuple[int, int]] = {}
    for m in edges:
        forward, backward = totals.get((m.source, m.target), (0, 0))
        totals[m.source, m.target] = (
            forward + model.message_ns(plan, m),
            backward + model.message_ns(plan, m, backward=True),
        )
    return [Transfer(source, target, *times) for (source, target), times in sorted(totals.items())]


@dataclass(frozen=True, slots=True)
class StageChain:
    """A plan as 1F1B* sees it.

    order: stage positions along the chain. forward, backward: ns of the items stage, cut, stage, …, shape
    (2n - 1,). A cut lasts as long as the longest transfer into the stage behind it: where a tensor skips
    stages it is sent just before it is read (and its gradient just after it is made), beside the others.
    """

    order: list[int]
    forward: IntArray
    backward: IntArray
    transfers: list[Transfer]
    edges: Sequence[Message]


def stage_chain(model: CostModel, plan: Plan) -> StageChain:
    """The plan's chain of stages.

    Raises UnsupportedProblem for what 1F1B* cannot run: stages that share a device, differ in micro-batch
    or have k > 1, stages that do not form a chain.
    """
    devices = [device for stage in plan.stages for device in stage.devices]
    if len(devices) != len(set(devices)):
        raise UnsupportedProblem("1F1B* gives every stage devices of its own; this plan shares some")
    if len({stage.micro_batch for stage in plan.stages}) > 1:
        raise UnsupportedProblem("1F1B* needs one micro-batch size; the stages of this plan differ")
    if any(stage.k != 1 for stage in plan.stages):
        raise UnsupportedProblem("1F1B* runs one forward, then one backward; this plan has stages with k > 1")
    order = chain_of_stages(model, plan)
    edges = model.messages(plan)
    transfers = transfers_of(model, plan, edges)
    forward = np.zeros(2 * len(order) - 1, np.int64)
    backward = np.zeros_like(forward)
    for place, stage in enumerate(order):
        times = model.stage_times(plan.stages[stage], plan)
        forward[2 * place], backward[2 * place] = times.forward, times.backward
        into = [t for t in transfers if t.target == stage]
        if into:
            forward[2 * place - 1] = max(t.forward_ns for t in into)
            backward[2 * place - 1] = max(t.backward_ns for t in into)
    return StageChain(order, forward, backward, transfers, edges)


def one_f_one_b_star(model: CostModel, plan: Plan) -> PeriodicSchedule:
    """The 1F1B* pattern of shortest period whose memory fits: inside the reserve if possible, else at all.

    Each stage also keeps to its `in_flight`, where the plan sets one. On links of mode `half` no pattern of
    a chain plan that sends tensors only to the next stage is shorter (MadPipe, Proposition 1, with each
    stage's forward and backward uninterrupted); other link modes and tensors that skip stages might allow a
    shorter one. Raises UnsupportedProblem (sync, or see stage_chain) and InfeasibleProblem naming the stage
    that does not fit with one micro-batch in flight.
    """
    if model.problem.regime.mode != "async":
        hint = f"use {scheduler_for('sync')} for sync"
        raise UnsupportedProblem("1F1B* has no flush: it schedules the async regime only", hint)
    chain = stage_chain(model, plan)
    memory = [model.stage_memory(plan, stage, chain.edges) for stage in chain.order]
    limits = [memory_limits(model.problem, plan.stages[stage].devices) for stage in chain.order]
    for choice in (0, -1):
        live = [
            most_live(plan.stages[stage], memory[place], limits[place][choice])
            for place, stage in enumerate(chain.order)
        ]
        period = int(minimal_period(chain.forward + chain.backward, np.array(live, np.int64)))
        if period > 0:
            return _pattern(chain, period)
    place = next(place for place, most in enumerate(live) if most < 1)
    raise too_large(chain.order[place], memory[place], limits[place][-1])


def most_live(stage: Stage, memory: StageMemory, limit: int) -> int:
    """Micro-batches that a stage may have in flight within `limit` bytes; below 1: it does not fit."""
    most = max(1, stage.in_flight // stage.micro_batch) if stage.in_flight else ENDLESS
    return min(most, memory.most_live(limit))


def too_large(position: int, memory: StageMemory, limit: int) -> InfeasibleProblem:
    """The error that names a stage that does not fit with one micro-batch in flight."""
    needed = memory.peak(1)
    return InfeasibleProblem(
        f"stage {position} needs {needed} bytes on each device with one micro-batch in flight, "
        f"its devices have {limit} bytes: {needed - limit} bytes too many",
        "cut it into smaller stages, or use a smaller micro-batch",
    )


def _pattern(chain: StageChain, period: int) -> PeriodicSchedule:
    forward_start, backward_start = start_times(chain.forward, chain.backward, period)
    place = {stage: position for position, stage in enumerate(chain.order)}
    operations = [(stage, "F", forward_start[2 * i]) for i, stage in enumerate(chain.order)]
    operations += [(stage, "B", backward_start[2 * i]) for i, stage in enumerate(chain.order)]
    sends = [(t.source, t.target, "F", forward_start[2 * place[t.target] - 1]) for t in chain.transfers]
    sends += [(t.target, t.source, "B", backward_start[2 * place[t.target] - 1]) for t in chain.transfers]
    return placed_schedule(period, operations, sends)
