"""A periodic schedule as operations with absolute start and duration, in integer nanoseconds."""

from dataclasses import dataclass

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Witness

Hop = tuple[int, int]
"""A pair of stages (sender, receiver)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What micro-batch 0 does: micro-batch i does the same i periods later.

    start may exceed the period (start_ns + shift * period_ns); duration in ns.
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
    """All operations of one period: F and B of every stage, transfers by (sender, receiver).

    forwarded: what crosses from producer to consumer. returned: its gradient, from consumer to producer.
    A hop that takes no time may be absent.
    """

    period: int
    forward: tuple[Operation, ...]
    backward: tuple[Operation, ...]
    forwarded: dict[Hop, Operation]
    returned: dict[Hop, Operation]


def read_pattern(problem: Problem, model: CostModel, plan: Plan, schedule: PeriodicSchedule) -> Pattern | Witness:
    """The operations of a schedule with the durations of the cost model, or the first that is wrong.

    A transfer lasts the sum of the messages between its two stages.
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
    """By kind, the ns of all messages from sender to receiver, for every pair of stages that has any."""
    times: dict[str, dict[Hop, int]] = {FORWARD: {}, BACKWARD: {}}
    for message in model.messages(plan):
        for kind, hop in (
            (FORWARD, (message.source, message.target)),
            (BACKWARD, (message.target, message.source)),
        ):
            taken = model.message_ns(plan, message, backward=kind == BACKWARD)
            times[kind][hop] = times[kind].get(hop, 0) + taken
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
