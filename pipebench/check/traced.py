"""The tasks of a trace in the order of the lanes, each with its start and end."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from pipebench.check.completeness import missing_or_repeated, out_of_range
from pipebench.check.lanes import wrong_lane
from pipebench.check.tasks import Tasks, kind_codes
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import BACKWARD, FORWARD
from pipebench.domain.trace import Trace
from pipebench.domain.verdict import Witness


@dataclass(frozen=True, slots=True)
class Traced:
    """Tasks lane after lane; start_ns and end_ns of each, shape (tasks,)."""

    tasks: Tasks
    start_ns: IntArray
    end_ns: IntArray


def traced_as_scheduled(plan: Plan, tasks: Tasks, trace: Trace) -> Traced | Witness:
    """The scheduled tasks with their times, or the first that the trace lacks, repeats or adds."""
    scheduled = list(zip(tasks.stage.tolist(), tasks.micro_batch.tolist(), map(chr, tasks.kind), strict=True))
    row = {key: row for row, key in enumerate(zip(trace.stage, trace.micro_batch, trace.kinds, strict=True))}
    if len(row) != len(trace.stage) or set(row) != set(scheduled):
        return _difference(scheduled, trace)
    witness = _wrong_lanes(plan, trace)
    if witness is not None:
        return witness
    order = np.array([row[key] for key in scheduled], dtype=np.int64)
    return Traced(tasks, np.array(trace.start_ns)[order], np.array(trace.end_ns)[order])


def traced_periods(plan: Plan, trace: Trace) -> Traced | Witness:
    """The tasks of an unrolled periodic schedule: F and B of the same micro-batches 0, 1, … in every stage."""
    if not set(trace.kinds) <= {FORWARD, BACKWARD}:
        return Witness(rule="coverage", message="the trace of a periodic schedule has tasks other than F and B")
    witness = _wrong_lanes(plan, trace)
    if witness is not None:
        return witness
    unrolled = max(1, len(trace.stage) // (2 * len(plan.stages)))
    lane, start, end = (np.array(column) for column in (trace.lane, trace.start_ns, trace.end_ns))
    order = np.lexsort((end, start, lane))
    sizes = np.bincount(lane, minlength=len(trace.lanes))
    tasks = Tasks(
        lane_start=np.concatenate(([0], np.cumsum(sizes))),
        stage=np.array(trace.stage, dtype=np.int64)[order],
        micro_batch=np.array(trace.micro_batch, dtype=np.int64)[order],
        kind=kind_codes(trace.kinds)[order],
        counts=np.full(len(plan.stages), unrolled, dtype=np.int64),
    )
    return out_of_range(tasks) or missing_or_repeated(tasks) or Traced(tasks, start[order], end[order])


def _wrong_lanes(plan: Plan, trace: Trace) -> Witness | None:
    stages: list[set[int]] = [set() for _ in trace.lanes]
    for lane, stage in zip(trace.lane, trace.stage, strict=True):
        if not 0 <= lane < len(stages):
            return Witness(rule="shape", message=f"the trace has no lane {lane}", stage=stage)
        stages[lane].add(stage)
    return wrong_lane(plan, list(zip(trace.lanes, stages, strict=True)))


def _difference(scheduled: list[tuple[int, int, str]], trace: Trace) -> Witness:
    traced = Counter(zip(trace.stage, trace.micro_batch, trace.kinds, strict=True))
    wanted = Counter(scheduled)
    stage, micro_batch, kind = min(key for key in traced | wanted if traced[key] != wanted[key])
    times = traced[stage, micro_batch, kind]
    message = (
        f"{kind} of stage {stage}, micro-batch {micro_batch} ran {times} times, "
        f"it is scheduled {wanted[stage, micro_batch, kind]} times"
    )
    return Witness(rule="coverage", message=message, stage=stage, micro_batch=micro_batch)
