"""A run that somebody else launched, set beside a row: clocks aligned, iterations and stages compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pipebench.bench.score import NS_PER_S, prediction_error
from pipebench.costs.lanes import lanes_of
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.row import Row
from pipebench.domain.trace import Trace
from pipebench.formats.chrome_trace import RankTrace


@dataclass(frozen=True, slots=True)
class RankGap:
    """One rank. offset_ns: to be added to its clock; None: no messages tie it to rank 0. busy: seconds of work in
    an iteration, as simulated for its device and as measured.
    """

    rank: int
    offset_ns: int | None
    iteration_s: float
    simulated_busy_s: float
    busy_s: float


@dataclass(frozen=True, slots=True)
class Attachment:
    """measured_s: the slowest rank's median iteration after warm-up. start_skew_s: how far apart ranks begin."""

    measured_s: float
    simulated_s: float | None
    error: float | None
    start_skew_s: float | None
    ranks: tuple[RankGap, ...]


def attached(row: Row, plan: Plan, simulated: Trace, traces: Sequence[RankTrace], warmup: int) -> Attachment:
    """The run of these ranks beside the row. Raises PipebenchError for ranks that do not fit the plan."""
    ordered = sorted(traces, key=lambda trace: trace.rank)
    numbers = [trace.rank for trace in ordered]
    devices = sorted({device for stage in plan.stages for device in stage.devices})
    if numbers != list(range(len(devices) * plan.copies)):
        wanted = f"ranks 0 to {len(devices) * plan.copies - 1}"
        raise PipebenchError(f"traces of ranks {', '.join(map(str, numbers))}, the plan has {wanted}")
    kept = [trace.steps[warmup:] for trace in ordered]
    if not all(kept):
        fewest = min(len(trace.steps) for trace in ordered)
        raise PipebenchError(f"a rank has {fewest} iterations, {warmup} are warm-up", "give --warmup 0")
    offsets = clock_offsets(ordered)
    iteration = [median(end - start for start, end in steps) / NS_PER_S for steps in kept]
    simulated_busy = _simulated_busy(plan, simulated, row.mini_batch)
    ranks = tuple(
        RankGap(
            rank=trace.rank,
            offset_ns=offset,
            iteration_s=seconds,
            simulated_busy_s=simulated_busy[devices[trace.rank % len(devices)]],
            busy_s=median(_within(trace.busy, step) for step in steps) / NS_PER_S,
        )
        for trace, offset, seconds, steps in zip(ordered, offsets, iteration, kept, strict=True)
    )
    begins = [steps[0][0] + offset for steps, offset in zip(kept, offsets, strict=True) if offset is not None]
    return Attachment(
        measured_s=max(iteration),
        simulated_s=row.simulated_s,
        error=prediction_error(row.simulated_s, max(iteration)),
        start_skew_s=(max(begins) - min(begins)) / NS_PER_S if len(begins) == len(kept) else None,
        ranks=ranks,
    )


def clock_offsets(traces: Sequence[RankTrace]) -> list[int | None]:
    """What to add to each rank's clock to read that of the first.

    The k-th message of a tag that r sends to s is the k-th that s gets from r. It ends after it began, whatever
    the clocks say: the smallest difference each way bounds the offset, and half of their difference is its
    estimate (Mills, Internet Time Synchronization, 1991). One way only: that bound itself. Ranks are reached over
    others.
    """
    offsets: list[int | None] = [0] + [None] * (len(traces) - 1)
    reached = [0]
    for base in reached:
        known = offsets[base]
        assert known is not None
        for other in range(len(traces)):
            if offsets[other] is None:
                ahead = _ahead(traces[base], traces[other])
                if ahead is not None:
                    offsets[other] = known - ahead
                    reached.append(other)
    return offsets


def _ahead(base: RankTrace, other: RankTrace) -> int | None:
    """By how much the other's clock is ahead of the base's."""
    there, back = _least(base, other), _least(other, base)
    if there is None or back is None:
        return there if back is None else -back
    return (there - back) // 2


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


def _within(busy: Sequence[tuple[int, int]], step: tuple[int, int]) -> int:
    return sum(max(0, min(end, step[1]) - max(start, step[0])) for start, end in busy)


def _simulated_busy(plan: Plan, trace: Trace, mini_batch: int) -> dict[int, float]:
    """Seconds of tasks in a mini-batch, by device of the first copy."""
    lanes, _ = lanes_of(plan)
    busy: dict[tuple[int, ...], int] = {}
    for lane, micro_batch, start, end in zip(
        trace.lane, trace.micro_batch, trace.start_ns, trace.end_ns, strict=True
    ):
        if trace.period_ns is None or micro_batch == 0:
            key = tuple(sorted(trace.lanes[lane]))
            busy[key] = busy.get(key, 0) + end - start
    times = 1 if trace.period_ns is None else mini_batch // (plan.stages[0].micro_batch * plan.copies)
    return {device: times * busy.get(lane, 0) / NS_PER_S for lane in lanes for device in lane}
