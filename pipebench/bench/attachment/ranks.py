"""Traces of ranks beside a simulation: their clocks aligned, iterations and stages compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pipebench.bench.execution import stage_seconds
from pipebench.bench.score import prediction_error
from pipebench.costs.placement import lanes_in_turn
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.trace import Trace
from pipebench.formats.chrome_trace import RankTrace
from pipebench.formats.spans import Span, SpanSums, merge_spans


@dataclass(frozen=True, slots=True)
class Offset:
    """What to add to a rank's clock to read that of the first, in ns. within_ns: the true one is no further away;
    None where messages go one way only, which bounds one side.
    """

    ns: int
    within_ns: int | None


def clock_offsets(traces: Sequence[RankTrace]) -> list[Offset | None]:
    """One a rank; None: no messages tie it to the first.

    The k-th message of a tag that r sends to s is the k-th that s gets from r. It ends after it began, whatever
    the clocks say: the smallest difference each way bounds the offset, and the middle between the bounds is its
    estimate (Mills, Internet Time Synchronization, 1991). One way only: that bound itself. Ranks are reached over
    others, by the way whose bounds are together the narrowest.
    """
    offsets: list[Offset | None] = [None] * len(traces)
    reached: dict[int, tuple[float, Offset]] = {0: (0.0, Offset(0, 0))}
    while reached:
        base = min(reached, key=lambda rank: (reached[rank][0], rank))
        width, known = reached.pop(base)
        offsets[base] = known
        for other in range(len(traces)):
            ahead = _ahead(traces[base], traces[other]) if offsets[other] is None else None
            if ahead is None:
                continue
            bounded = known.within_ns is not None and ahead.within_ns is not None
            within = (known.within_ns or 0) + (ahead.within_ns or 0) if bounded else None
            cost = width + (float("inf") if ahead.within_ns is None else ahead.within_ns)
            if other not in reached or cost < reached[other][0]:
                reached[other] = (cost, Offset(known.ns - ahead.ns, within))
    return offsets


def _ahead(base: RankTrace, other: RankTrace) -> Offset | None:
    """By how much the other's clock is ahead of the base's."""
    there, back = _least(base, other), _least(other, base)
    if there is not None and back is not None:
        return Offset((there - back) // 2, abs(there + back + 1) // 2)
    if there is None and back is None:
        return None
    return Offset(there if there is not None else -(back or 0), None)


def _least(sender: RankTrace, receiver: RankTrace) -> int | None:
    """The smallest time of a message, by the receiver's clock at its end and the sender's at its beginning."""
    sent: dict[int, list[int]] = {}
    got: dict[int, list[int]] = {}
    for message in sender.sent:
        if message.peer == receiver.rank:
            sent.setdefault(message.tag, []).append(message.start_ns)
    for message in receiver.got:
        if message.peer == sender.rank:
            got.setdefault(message.tag, []).append(message.end_ns)
    pairs = [pair for tag, starts in sent.items() for pair in zip(starts, got.get(tag, ()), strict=False)]
    return min((end - start for start, end in pairs), default=None)


@dataclass(frozen=True, slots=True)
class RankGap:
    """One rank. offset_ns: to be added to its clock; None: no messages tie it to rank 0. within_ns: how far the
    true one may be from it; None: not bounded. busy: seconds of work in an iteration, as simulated for its device
    and as measured.
    """

    rank: int
    offset_ns: int | None
    within_ns: int | None
    iteration_s: float
    simulated_busy_s: float
    busy_s: float


@dataclass(frozen=True, slots=True)
class AttachedStage:
    """Seconds of work of a micro-batch, forward and backward. marked: its tasks are marked in the traces; else it
    is the work of an iteration over the rank's micro-batches, on ranks that have no other stage.
    """

    stage: int
    simulated_s: float
    measured_s: float
    error: float | None
    marked: bool


@dataclass(frozen=True, slots=True)
class AttachedRanks:
    """measured_s: the slowest rank's median iteration after warm-up. start_skew_s: how far apart ranks begin,
    None where messages do not tie them together. stages: those of which the traces tell the time.
    """

    measured_s: float
    start_skew_s: float | None
    ranks: tuple[RankGap, ...]
    stages: tuple[AttachedStage, ...]


def attach_ranks(
    plan: Plan, simulated: Trace, mini_batch: int, traces: Sequence[RankTrace], warmup: int
) -> AttachedRanks:
    """These ranks beside the simulation. Raises PipebenchError for ranks that do not fit the plan."""
    ordered = sorted(traces, key=lambda trace: trace.rank)
    numbers = [trace.rank for trace in ordered]
    devices = sorted({device for stage in plan.stages for device in stage.devices})
    last = len(devices) * plan.copies - 1
    if len(set(numbers)) < len(numbers) or numbers[-1] > last:
        listed = ", ".join(map(str, numbers))
        raise PipebenchError(f"traces of ranks {listed}, the plan has ranks 0 to {last}", "give one file a rank")
    kept = [trace.steps[warmup:] for trace in ordered]
    if not all(kept):
        fewest = min(len(trace.steps) for trace in ordered)
        raise PipebenchError(f"a rank has {fewest} iterations, {warmup} are warm-up", "give --warmup 0")
    offsets = clock_offsets(ordered)
    sums = [SpanSums(trace.busy) for trace in ordered]
    iteration = [median(end - start for start, end in steps) / NS_PER_S for steps in kept]
    if not min(iteration):
        raise PipebenchError("the iterations of a rank take no time", "write the trace in on_trace_ready")
    simulated_busy = _simulated_busy(plan, simulated, mini_batch)
    ranks = tuple(
        RankGap(
            rank=trace.rank,
            offset_ns=None if offset is None else offset.ns,
            within_ns=None if offset is None else offset.within_ns,
            iteration_s=seconds,
            simulated_busy_s=simulated_busy[devices[trace.rank % len(devices)]],
            busy_s=median(busy.within(*step) for step in steps) / NS_PER_S,
        )
        for trace, offset, seconds, steps, busy in zip(ordered, offsets, iteration, kept, sums, strict=True)
    )
    begins = [steps[0][0] + offset.ns for steps, offset in zip(kept, offsets, strict=True) if offset is not None]
    return AttachedRanks(
        measured_s=max(iteration),
        start_skew_s=(max(begins) - min(begins)) / NS_PER_S if len(begins) == len(kept) else None,
        ranks=ranks,
        stages=tuple(_stages(plan, simulated, mini_batch, ordered, sums, kept, devices)),
    )


def _stages(
    plan: Plan,
    simulated: Trace,
    mini_batch: int,
    traces: Sequence[RankTrace],
    sums: Sequence[SpanSums],
    kept: Sequence[Sequence[Span]],
    devices: Sequence[int],
) -> Iterator[AttachedStage]:
    """Each stage over all ranks that run it."""
    expected = stage_seconds(simulated, len(plan.stages))
    held = [[s for s, stage in enumerate(plan.stages) if device in stage.devices] for device in devices]
    for stage, described in enumerate(plan.stages):
        tasks: dict[str, list[int]] = {}
        iterations: list[float] = []
        count = mini_batch // (described.micro_batch * plan.all_pipelines)
        for trace, busy, steps in zip(traces, sums, kept, strict=True):
            own = held[trace.rank % len(devices)]
            if stage not in own:
                continue
            alone = len(own) == 1
            during = SpanSums(merge_spans(steps))
            for task in trace.tasks:
                mine = task.stage == stage or (task.stage is None and alone)
                if mine and during.within(task.start_ns, task.start_ns + 1):
                    tasks.setdefault(task.kind, []).append(busy.within(task.start_ns, task.end_ns))
            turn = _own_turn(described, devices[trace.rank % len(devices)])
            each = count / described.turns if simulated.period_ns else len(range(turn, count, described.turns))
            iterations += [busy.within(*step) / each for step in steps] if alone and each else []
        marked = sum(median(times) for times in tasks.values()) / NS_PER_S
        measured = marked or (median(iterations) / NS_PER_S if iterations else 0.0)
        if measured:
            error = prediction_error(expected[stage], measured)
            yield AttachedStage(stage, expected[stage], measured, error, marked > 0)


def _own_turn(stage: Stage, device: int) -> int:
    """The turn in which a device of the stage takes micro-batches."""
    return next(turn for turn, devices in enumerate(stage.device_sets) if device in devices)


def _simulated_busy(plan: Plan, trace: Trace, mini_batch: int) -> dict[int, float]:
    """Seconds of tasks in a mini-batch, by device of the first copy."""
    lanes, _ = lanes_in_turn(plan)
    busy: dict[tuple[int, ...], float] = {}
    for lane, stage, micro_batch, start, end in zip(
        trace.lane, trace.stage, trace.micro_batch, trace.start_ns, trace.end_ns, strict=True
    ):
        turns = 1 if trace.period_ns is None else plan.stages[stage].turns
        if trace.period_ns is None or micro_batch < turns:
            key = tuple(sorted(trace.lanes[lane]))
            busy[key] = busy.get(key, 0) + (end - start) / turns
    times = 1 if trace.period_ns is None else mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    return {device: times * busy.get(lane, 0) / NS_PER_S for lane in lanes for device in lane}
