"""The rules of a periodic schedule, without memory: operations, dependencies, resources, buffers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.costs.placement import turns_between
from pipebench.documents.units import exact_ns
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench.domain.verdict import Witness

Hop = tuple[int, int]
"""A pair of stages (sender, receiver)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of micro-batch 0. Micro-batch i runs it i periods later.

    start: may exceed the period (start_ns + shift * period_ns).
    duration: in ns; the longest of a transfer between replicas that take micro-batches in turn.
    """

    name: str
    stage: int
    start: int
    duration: int

    @property
    def end(self) -> int:
        """start + duration."""
        return self.start + self.duration


@dataclass(frozen=True, slots=True)
class Pattern:
    """All operations of one period: F and B of every stage, and transfers keyed by (sender, receiver).

    forwarded: transfers of tensors, from producer to consumer.
    returned: transfers of gradients, from consumer to producer.
    A transfer that takes no time may be missing.
    """

    period: int
    forward: tuple[Operation, ...]
    backward: tuple[Operation, ...]
    forwarded: dict[Hop, Operation]
    returned: dict[Hop, Operation]


def read_pattern(problem: Problem, model: CostModel, plan: Plan, schedule: PeriodicSchedule) -> Pattern | Witness:
    """The operations of a schedule with the durations of the cost model, or the first wrong operation.

    A transfer lasts as long as all messages between its two stages together, in the turn where that takes longest.
    """
    if problem.regime.mode == "sync":
        return Witness(rule="shape", message="a periodic schedule never flushes; the problem's regime is sync")
    sizes = {stage.micro_batch for stage in plan.stages}
    if len(sizes) > 1:
        message = f"a periodic schedule needs one micro-batch size, the plan has {sorted(sizes)}"
        return Witness(rule="shape", message=message)
    operations = _operations(model, plan, schedule)
    if isinstance(operations, Witness):
        return operations
    transfers = _transfers(model, plan, schedule)
    if isinstance(transfers, Witness):
        return transfers
    stages = range(len(plan.stages))
    return Pattern(
        period=schedule.period_ns,
        forward=tuple(operations[FORWARD, stage] for stage in stages),
        backward=tuple(operations[BACKWARD, stage] for stage in stages),
        forwarded=transfers[FORWARD],
        returned=transfers[BACKWARD],
    )


def _operations(
    model: CostModel, plan: Plan, schedule: PeriodicSchedule
) -> dict[tuple[str, int], Operation] | Witness:
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    found: dict[tuple[str, int], Operation] = {}
    columns = zip(schedule.kinds, schedule.stage, schedule.start_ns, schedule.shift, strict=True)
    for kind, stage, start_ns, shift in columns:
        if not 0 <= stage < len(times):
            return Witness(rule="shape", message=f"the plan has no stage {stage}", stage=stage)
        if (kind, stage) in found:
            return Witness(rule="coverage", message=f"{kind} of stage {stage} stands twice", stage=stage)
        duration = times[stage].forward if kind == FORWARD else times[stage].backward
        start = start_ns + shift * schedule.period_ns
        found[kind, stage] = Operation(f"{kind} of stage {stage}", stage, start, duration)
    for stage in range(len(times)):
        for kind in (FORWARD, BACKWARD):
            if (kind, stage) not in found:
                return Witness(rule="coverage", message=f"{kind} of stage {stage} is missing", stage=stage)
    return found


def hop_times(model: CostModel, plan: Plan) -> dict[str, dict[Hop, int]]:
    """For each kind the ns of all messages from sender to receiver, for every pair of stages with messages.

    Where replicas take micro-batches in turn, those of the turn in which they take longest.
    """
    times: dict[str, dict[Hop, int]] = {FORWARD: {}, BACKWARD: {}}
    between: dict[Hop, list[Message]] = defaultdict(list)
    for message in model.messages(plan):
        between[message.source, message.target].append(message)
    for (source, target), messages in between.items():
        turns = range(turns_between(plan.stages[source], plan.stages[target]))
        for kind, hop in ((FORWARD, (source, target)), (BACKWARD, (target, source))):
            times[kind][hop] = max(
                sum(model.message_ns(plan, each, kind == BACKWARD, turn) for each in messages) for turn in turns
            )
    return times


def _transfers(
    model: CostModel, plan: Plan, schedule: PeriodicSchedule
) -> dict[str, dict[Hop, Operation]] | Witness:
    times = hop_times(model, plan)
    found: dict[str, dict[Hop, Operation]] = {FORWARD: {}, BACKWARD: {}}
    columns = zip(
        schedule.transfer_kinds,
        schedule.source,
        schedule.target,
        schedule.transfer_start_ns,
        schedule.transfer_shift,
        strict=True,
    )
    for kind, source, target, start_ns, shift in columns:
        hop = source, target
        name = f"the {kind} transfer from stage {source} to stage {target}"
        if hop not in times[kind]:
            return Witness(rule="shape", message=f"{name}: nothing crosses there", stage=source)
        if hop in found[kind]:
            return Witness(rule="coverage", message=f"{name} stands twice", stage=source)
        start = start_ns + shift * schedule.period_ns
        found[kind][hop] = Operation(name, source, start, times[kind][hop])
    for kind, hops in times.items():
        for (source, target), taken in hops.items():
            if taken > 0 and (source, target) not in found[kind]:
                message = (
                    f"the {kind} transfer from stage {source} to stage {target} is missing ({exact_ns(taken)})"
                )
                return Witness(rule="coverage", message=message, stage=source)
    return found


def broken_dependency(pattern: Pattern, edges: list[tuple[int, int]]) -> Witness | None:
    """The first operation of micro-batch 0 that starts before an operation that it needs has ended.

    Other micro-batches are shifted by whole periods, so checking micro-batch 0 suffices. An order edge is an edge
    without transfer.
    """
    for before, after in _dependencies(pattern, edges):
        if after.start < before.end:
            message = (
                f"{after.name} starts at {exact_ns(after.start)}, {before.name} ends at {exact_ns(before.end)} "
                f"({exact_ns(before.end - after.start)} too late)"
            )
            return Witness(
                rule="dependency", message=message, stage=after.stage, micro_batch=0, instant_ns=after.start
            )
    return None


def _dependencies(pattern: Pattern, edges: list[tuple[int, int]]) -> Iterator[tuple[Operation, Operation]]:
    yield from zip(pattern.forward, pattern.backward, strict=True)
    for before, after in edges:
        down, up = pattern.forwarded.get((before, after)), pattern.returned.get((after, before))
        yield from _through(pattern.forward[before], down, pattern.forward[after])
        yield from _through(pattern.backward[after], up, pattern.backward[before])


def _through(
    producer: Operation, transfer: Operation | None, consumer: Operation
) -> Iterator[tuple[Operation, Operation]]:
    if transfer is None:
        yield producer, consumer
    else:
        yield producer, transfer
        yield transfer, consumer


DeviceSet = tuple[int, ...]


def busy_twice(plan: Plan, pattern: Pattern, mode: LinkMode) -> Witness | None:
    """The first device, else the first link, on which two operations overlap modulo the period.

    One of r replicas in turn, and one of the links between them, is used every r-th period only.
    Link mode `half`: one transfer at a time for a pair of device sets.
    Link mode `full`: one transfer at a time for each direction.
    Link mode `delay`: any number.
    """
    lanes: dict[DeviceSet, list[Operation]] = defaultdict(list)
    for operation in (*pattern.forward, *pattern.backward):
        lanes[plan.stages[operation.stage].devices].append(operation)
    for devices, operations in lanes.items():
        every = pattern.period * plan.stages[operations[0].stage].turns
        witness = overlap(operations, every, f"on devices {devices}")
        if witness is not None:
            return witness
    if mode == "delay":
        return None
    links: dict[tuple[DeviceSet, DeviceSet], list[Operation]] = defaultdict(list)
    turns: dict[tuple[DeviceSet, DeviceSet], int] = {}
    for (source, target), transfer in (*pattern.forwarded.items(), *pattern.returned.items()):
        if transfer.duration > 0:
            link = link_between(plan, source, target, mode)
            links[link].append(transfer)
            turns[link] = turns_between(plan.stages[source], plan.stages[target])
    for (sender, receiver), operations in links.items():
        every = pattern.period * turns[sender, receiver]
        witness = overlap(operations, every, f"on the link between devices {sender} and {receiver}")
        if witness is not None:
            return witness
    return None


def link_between(
    plan: Plan, source: int, target: int, mode: LinkMode, turn: int | None = None
) -> tuple[DeviceSet, DeviceSet]:
    """The link of a transfer between two stages: an ordered pair in mode `full`, else an unordered one.

    turn: a micro-batch, which says between which replicas in turn it goes; None: between all, in their turns.
    """
    sender, receiver = (
        stage.devices if turn is None else stage.devices_of(turn)
        for stage in (plan.stages[source], plan.stages[target])
    )
    return (sender, receiver) if mode == "full" or sender <= receiver else (receiver, sender)


def overlap(operations: Iterable[Operation], period: int, where: str) -> Witness | None:
    """The first two operations that overlap when each repeats every `period` ns.

    The operations are sorted by start on a circle of length `period`; each must end before the next starts. An
    operation without duration may stand at the boundary of another, but not inside it.
    """
    ring = sorted(operations, key=lambda o: (o.start % period, o.duration))
    for operation, following in pairwise([*ring, ring[0]]):
        gap = following.start % period - operation.start % period
        if following is ring[0]:
            gap += period
        if operation.duration > gap:
            if following is operation:
                lasts = exact_ns(operation.duration)
                message = f"{operation.name} takes {lasts} {where}, the period is {exact_ns(period)}"
            else:
                late = operation.duration - gap
                message = f"{operation.name} overlaps {following.name} {where} by {exact_ns(late)}"
            instant = operation.start % period
            return Witness(rule="resource", message=message, stage=operation.stage, instant_ns=instant)
    return None


def overrun_buffer(plan: Plan, pattern: Pattern, edges: list[tuple[int, int]]) -> Witness | None:
    """The first buffer that would have to hold two micro-batches: one that is occupied for longer than a period.

    A replica that takes every r-th micro-batch has r periods.

    A receive buffer is occupied from the start of the transfer to the start of the operation that reads it.
    A send buffer is occupied from the end of the operation that fills it to the end of the transfer.
    Without a transfer there is one buffer, from the end of the producer to the start of the consumer.
    """
    for before, after in edges:
        down, up = pattern.forwarded.get((before, after)), pattern.returned.get((after, before))
        for producer, transfer, consumer in (
            (pattern.forward[before], down, pattern.forward[after]),
            (pattern.backward[after], up, pattern.backward[before]),
        ):
            for name, taken, freed, stage in _spans(producer, transfer, consumer):
                if freed - taken > pattern.period * plan.stages[stage].turns:
                    message = (
                        f"the {name} between {producer.name} and {consumer.name} is taken for "
                        f"{exact_ns(freed - taken)}, the period is {exact_ns(pattern.period)}"
                    )
                    return Witness(rule="resource", message=message, stage=stage, instant_ns=taken)
    return None


def _spans(
    producer: Operation, transfer: Operation | None, consumer: Operation
) -> Iterator[tuple[str, int, int, int]]:
    if transfer is None:
        yield "buffer", producer.end, consumer.start, consumer.stage
    else:
        yield "send buffer", producer.end, transfer.end, producer.stage
        yield "receive buffer", transfer.start, consumer.start, consumer.stage
