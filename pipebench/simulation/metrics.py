"""What a trace is worth: seconds, throughput, bubble and peak memory."""

from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import NS_PER_S, FloatArray, IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.trace import Trace


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures of a trace.

    seconds: time of one mini-batch.
    throughput: samples/s.
    bubble: idle share of the devices used, in [0, 1].
    peak_memory_bytes: peak of each device used, in all copies of the pipeline.
    """

    seconds: float
    throughput: float
    bubble: float
    peak_memory_bytes: dict[int, int]


def metrics(problem: Problem, plan: Plan, trace: Trace) -> Metrics:
    """The metrics of a trace of this plan.

    A trace with a period: one mini-batch takes mini_batch / (micro_batch * pipelines of all copies) periods, and
    the bubble is that of one steady period. Any other trace counts as a whole.
    A device idles while its lane runs no task (an all-reduce is a task).
    A trace of length 0 has throughput and bubble 0.
    """
    if trace.period_ns is None:
        length_ns = span_ns = trace.total_ns
        busy_ns = _busy(trace)
    else:
        span_ns = trace.period_ns
        busy_ns = _busy_in_a_period(plan, trace)
        length_ns = span_ns * problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    devices = np.array([len(ids) for ids in trace.lanes], np.int64)
    available = span_ns * int(devices.sum())
    seconds = length_ns / NS_PER_S
    return Metrics(
        seconds=seconds,
        throughput=problem.mini_batch / seconds if seconds else 0.0,
        bubble=max(0.0, 1.0 - float((busy_ns * devices).sum()) / available) if available else 0.0,
        peak_memory_bytes=_peaks(plan, trace),
    )


def _busy(trace: Trace) -> FloatArray:
    """ns during which each lane runs a task. A time with two tasks at once counts once."""
    lane, start, end = (np.array(column, np.int64) for column in (trace.lane, trace.start_ns, trace.end_ns))
    order = np.lexsort((start, lane))
    lane, start, end = lane[order], start[order], end[order]
    # Lane after lane on one time axis, so that the running maximum never looks into another lane.
    low = int(start.min(initial=0))
    offset = lane * (int(end.max(initial=0)) - low + 1) - low
    start, end = start + offset, end + offset
    reached = np.maximum.accumulate(np.append(0, end))[:-1]
    return _by_lane(trace, lane, np.maximum(end, reached) - np.maximum(start, reached))


def _busy_in_a_period(plan: Plan, trace: Trace) -> FloatArray:
    """ns of the tasks that each lane runs in a period: those of one micro-batch, in every r-th of r replicas."""
    lane, length = np.array(trace.lane, np.int64), np.array(trace.end_ns, np.int64) - np.array(trace.start_ns)
    turns = np.array([stage.turns for stage in plan.stages], np.int64)[np.array(trace.stage, np.int64)]
    length[np.array(trace.micro_batch, np.int64) >= turns] = 0
    return _by_lane(trace, lane, length / turns)


def _by_lane(trace: Trace, lane: IntArray, length: IntArray | FloatArray) -> FloatArray:
    return np.bincount(lane, weights=length.astype(np.float64), minlength=len(trace.lanes)).astype(np.float64)


def _peaks(plan: Plan, trace: Trace) -> dict[int, int]:
    shift = plan.copy_size
    return {
        timeline.device + copy * shift: timeline.peak_bytes
        for copy in range(plan.copies)
        for timeline in trace.memory
    }
