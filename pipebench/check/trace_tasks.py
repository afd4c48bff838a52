"""The tasks of a trace: as scheduled, with their durations, one at a time in a lane, precedences kept."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from pipebench.check.schedule import Waits, missing_or_repeated, out_of_range, waits, wrong_lane
from pipebench.check.tasks import IndexedTasks, indexed
from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import B, F, I, R, Tasks, W, first_rows, kind_codes, kind_letters
from pipebench.documents.units import exact_ns
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import BACKWARD, FORWARD, TASK_KINDS
from pipebench.domain.trace import Trace
from pipebench.domain.verdict import Rule, Witness


@dataclass(frozen=True, slots=True)
class TracedTasks:
    """Tasks lane after lane; start_ns and end_ns of each, shape (tasks,)."""

    tasks: IndexedTasks
    start_ns: IntArray
    end_ns: IntArray


def traced_as_scheduled(plan: Plan, tasks: IndexedTasks, trace: Trace) -> TracedTasks | Witness:
    """The scheduled tasks with their times, or the first that the trace lacks, repeats or adds."""
    scheduled = list(zip(tasks.stage.tolist(), tasks.micro_batch.tolist(), kind_letters(tasks.kind), strict=True))
    row = {key: row for row, key in enumerate(zip(trace.stage, trace.micro_batch, trace.kinds, strict=True))}
    if len(row) != len(trace.stage) or set(row) != set(scheduled):
        return _difference(scheduled, trace)
    witness = _wrong_lanes(plan, trace)
    if witness is not None:
        return witness
    order = np.array([row[key] for key in scheduled], dtype=np.int64)
    return TracedTasks(tasks, np.array(trace.start_ns)[order], np.array(trace.end_ns)[order])


def traced_periods(plan: Plan, trace: Trace) -> TracedTasks | Witness:
    """The tasks of an unrolled periodic schedule: F and B of the same micro-batches 0, 1, … in every stage."""
    if not set(trace.kinds) <= {FORWARD, BACKWARD}:
        return Witness(rule="coverage", message="the trace of a periodic schedule has tasks other than F and B")
    witness = _wrong_lanes(plan, trace)
    if witness is not None:
        return witness
    unrolled = max(1, len(trace.stage) // (2 * len(plan.stages)))
    lane, start, end = (np.array(column) for column in (trace.lane, trace.start_ns, trace.end_ns))
    order = np.lexsort((end, start, lane))
    columns = Tasks(
        devices=trace.lanes,
        first=first_rows(np.bincount(lane, minlength=len(trace.lanes))),
        stage=np.array(trace.stage, dtype=np.int64)[order],
        micro_batch=np.array(trace.micro_batch, dtype=np.int64)[order],
        kind=kind_codes(trace.kinds)[order],
    )
    tasks = indexed(columns, plan, np.full(len(plan.stages), unrolled, dtype=np.int64))
    return out_of_range(tasks) or missing_or_repeated(tasks) or TracedTasks(tasks, start[order], end[order])


def _wrong_lanes(plan: Plan, trace: Trace) -> Witness | None:
    tasks: list[set[tuple[int, int]]] = [set() for _ in trace.lanes]
    for lane, stage, micro_batch in zip(trace.lane, trace.stage, trace.micro_batch, strict=True):
        if not 0 <= lane < len(tasks):
            return Witness(rule="shape", message=f"the trace has no lane {lane}", stage=stage)
        tasks[lane].add((stage, micro_batch if plan.takes_turns else 0))
    return wrong_lane(plan, list(zip(trace.lanes, tasks, strict=True)))


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


def wrong_duration(model: CostModel, plan: Plan, traced: TracedTasks, simulated: bool) -> Witness | None:
    """The first task that ends before it starts, or, if simulated, has another duration than the cost model gives.

    The simulated tasks of a pair start together, and each lasts as long as the pair.
    """
    lasted = traced.end_ns - traced.start_ns
    expected = _durations(model, plan, traced.tasks)
    wrong = lasted != expected if simulated else lasted < 0
    if not wrong.any():
        apart = traced.start_ns != traced.start_ns[traced.tasks.pair_start]
        if not (simulated and apart.any()):
            return None
        task = int(np.argmax(apart))
        other = traced.tasks.name(int(traced.tasks.pair_start[task]))
        return _witness(traced, task, "shape", f"does not start together with {other}")
    task = int(np.argmax(wrong))
    wanted = f"it takes {exact_ns(expected[task])}" if simulated else "it ends before it starts"
    return _witness(traced, task, "shape", f"lasts {exact_ns(lasted[task])}, {wanted}")


def overlap_in_lane(traced: TracedTasks, tolerance_ns: int) -> Witness | None:
    """The first task that starts before the previous task of its lane has ended.

    Tasks of a pair run at the same time: the previous task of both is the one in front of the pair.
    """
    tasks = traced.tasks
    last_end = np.maximum(traced.end_ns, traced.end_ns[tasks.pair_start])
    before = tasks.pair_start - 1
    same_lane = (before >= 0) & (tasks.lane[before] == tasks.lane)
    early = same_lane & (traced.start_ns < last_end[before] - tolerance_ns)
    if not early.any():
        return None
    task = int(np.argmax(early))
    front = int(before[task])
    ended = f"{tasks.name(front)} before it in the lane ends at {exact_ns(last_end[front])}"
    return _witness(traced, task, "resource", f"starts at {exact_ns(traced.start_ns[task])}, {ended}")


def broken_precedence(
    plan: Plan, traced: TracedTasks, edges: list[tuple[int, int]], tolerance_ns: int
) -> Witness | None:
    """The first task that starts before a task that it needs, in its own or another stage, has ended.

    Where a backward is split, the order of the lane already keeps its parts in order.
    """
    tasks = traced.tasks
    for pairs in (Waits(tasks.gradient, tasks.forward), waits(plan, tasks, edges)):
        early = traced.start_ns[pairs.task] < traced.end_ns[pairs.needed] - tolerance_ns
        if early.any():
            pair = int(np.argmax(early))
            task, needed = int(pairs.task[pair]), int(pairs.needed[pair])
            ended = f"{tasks.name(needed)}, which it needs, ends at {exact_ns(traced.end_ns[needed])}"
            return _witness(traced, task, "dependency", f"starts at {exact_ns(traced.start_ns[task])}, {ended}")
    return None


def _durations(model: CostModel, plan: Plan, tasks: IndexedTasks) -> IntArray:
    table = np.zeros((len(plan.stages), len(TASK_KINDS)), dtype=np.int64)
    for position, stage in enumerate(plan.stages):
        times = model.stage_times(stage, plan)
        table[position, [F, B, W, R]] = times.forward, times.backward, times.weight_gradient, times.all_reduce
        table[position, I] = times.backward - times.weight_gradient
    durations: IntArray = table[tasks.stage, tasks.kind]
    first, second = tasks.together, tasks.together + 1
    durations[first] = durations[second] = Formula.pair_ns(
        durations[first], durations[second], model.problem.overlap
    )
    return durations


def _witness(traced: TracedTasks, task: int, rule: Rule, what: str) -> Witness:
    return Witness(
        rule=rule,
        message=f"{traced.tasks.name(task)} {what}",
        stage=int(traced.tasks.stage[task]),
        micro_batch=int(traced.tasks.micro_batch[task]),
        instant_ns=int(traced.start_ns[task]),
    )
