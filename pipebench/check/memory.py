"""Whether memory suffices: for finite and periodic schedules, for traces, and for the declared in_flight of
stages.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pipebench.check.periodic import Operation, Pattern
from pipebench.check.tasks import IndexedTasks
from pipebench.costs.formula import StageMemory
from pipebench.costs.model import CostModel
from pipebench.costs.placement import devices_of_copies
from pipebench.costs.quantise import IntArray, whole_bytes
from pipebench.costs.tasks import B, F, R, W
from pipebench.documents.units import exact_bytes, exact_ns
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.trace import Trace
from pipebench.domain.verdict import Fit, Verdict, Witness


def fit_of(problem: Problem, peaks: Mapping[int, int]) -> Fit:
    """`fits`, `tight` (inside the reserve that the pins ask for) or `does not fit`, for the worst device.

    peaks: device id to bytes. The reserve is rounded up to whole bytes.
    """
    tight = False
    for device, peak in peaks.items():
        memory = problem.cluster.type_of(device).memory_bytes
        if peak > memory:
            return "does not fit"
        tight |= peak > memory - whole_bytes(memory * problem.pins.reserve)
    return "tight" if tight else "fits"


def most_over(problem: Problem, peaks: Mapping[int, int]) -> tuple[int, int] | None:
    """The device that exceeds its memory by the most, and by how many bytes; None when all fit."""
    over = {device: peak - problem.cluster.type_of(device).memory_bytes for device, peak in peaks.items()}
    worst = min(over, key=lambda device: (-over[device], device), default=None)
    return None if worst is None or over[worst] <= 0 else (worst, over[worst])


def finite_memory(
    problem: Problem, model: CostModel, plan: Plan, schedule: FiniteSchedule, tasks: IndexedTasks
) -> Verdict:
    """The peak of each device, and a witness where it exceeds the device."""
    edges = model.messages(plan)
    of_stage = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
    stages_on: dict[tuple[int, ...], dict[int, StageMemory]] = {}
    for position, stage in enumerate(plan.stages):
        for devices in stage.device_sets:
            stages_on.setdefault(tuple(sorted(devices)), {})[position] = of_stage[position]
    peaks: dict[int, int] = {}
    peak_task: dict[int, int] = {}
    for number, lane in enumerate(schedule.lanes):
        here = stages_on.get(tuple(sorted(lane.devices)), {})
        peak, task = lane_peak(tasks, number, here)
        for device in devices_of_copies(plan, lane.devices):
            peaks[device], peak_task[device] = peak, task
    fit = fit_of(problem, peaks)
    worst = most_over(problem, peaks)
    if worst is None:
        return Verdict(status="valid", fit=fit, peak_bytes=peaks)
    device, over = worst
    task = peak_task[device]
    position = task - int(tasks.first[tasks.lane[task]])
    message = (
        f"device {device} needs {exact_bytes(peaks[device])} during {tasks.name(task)} (task {position} of its "
        f"lane), {exact_bytes(over)} more than it has"
    )
    witness = Witness(
        rule="memory",
        message=message,
        device=device,
        stage=int(tasks.stage[task]),
        micro_batch=int(tasks.micro_batch[task]),
        bytes_over=over,
    )
    return Verdict(status="invalid", witness=witness, fit=fit, peak_bytes=peaks)


def lane_peak(tasks: IndexedTasks, lane: int, of_stage: Mapping[int, StageMemory]) -> tuple[int, int]:
    """The most bytes on a device of the lane and the first task during which it holds them.

    A micro-batch is live from the start of its F to the end of its B (of its W when split).
    A task adds the workspace of its stage; a pair adds the workspaces of both stages; R adds none.
    """
    first, end = int(tasks.first[lane]), int(tasks.first[lane + 1])
    held = sum(memory.held for memory in of_stage.values())
    if first == end:
        return held, first
    which, stage = np.unique(tasks.stage[first:end], return_inverse=True)
    kind = tasks.kind[first:end]
    here = [of_stage[position] for position in which.tolist()]
    # Bytes of live micro-batches may be beyond 64 bits; then they are counted in Python's integers.
    most = (end - first) * sum(m.per_micro_batch + m.while_live + 2 * m.workspace for m in here) + held
    exact = np.int64 if most < 2**63 else np.object_
    each, some, workspace = (
        np.array([getattr(memory, name) for memory in here], exact)[stage]
        for name in ("per_micro_batch", "while_live", "workspace")
    )
    starts, releases = kind == F, (kind == B) | (kind == W)
    change = starts.astype(np.int64) - releases
    live = _counted_by(stage, change)
    begins, ends = starts & (live == 1), releases & (live == 0)
    after = np.cumsum(change * each + (begins.astype(np.int64) - ends) * some)
    during = held + after + np.where(releases, each + ends * some, 0) + np.where(kind == R, 0, workspace)
    paired = np.flatnonzero(tasks.pair_end[first:end] > np.arange(first, end))
    during[paired] += workspace[paired + 1]
    during[paired + 1] += workspace[paired]
    position = int(np.argmax(during))
    peak = int(during[position])
    return (peak, first + position) if peak > held else (held, first)


def _counted_by(group: IntArray, change: IntArray) -> IntArray:
    """The sum of the changes of the same group up to each place, that of the place included."""
    order = np.argsort(group, kind="stable")
    summed = np.cumsum(change[order])
    first = np.searchsorted(group[order], group)
    before = np.concatenate([np.zeros(1, np.int64), summed])[first]
    found: IntArray = np.empty_like(summed)
    found[order] = summed
    found -= before
    return found


def periodic_memory(problem: Problem, model: CostModel, plan: Plan, pattern: Pattern) -> Verdict:
    """The peak of each device, and a witness where it exceeds the device.

    The memory of a device changes only when one of its own operations starts or ends, and grows only at a start.
    So only the starts are looked at.
    """
    edges = model.messages(plan)
    of_stage = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
    peaks: dict[int, int] = {}
    peak_operation: dict[int, Operation] = {}
    for devices in dict.fromkeys(stage.devices for stage in plan.stages):
        stages = [p for p, stage in enumerate(plan.stages) if stage.devices == devices]
        starts = [operation for p in stages for operation in (pattern.forward[p], pattern.backward[p])]
        every = pattern.period * plan.stages[stages[0]].turns
        held = {o.name: bytes_at(o, stages, of_stage, pattern, every) for o in starts}
        worst = max(starts, key=lambda o: held[o.name])
        for device in devices_of_copies(plan, devices):
            peaks[device], peak_operation[device] = held[worst.name], worst
    fit = fit_of(problem, peaks)
    most = most_over(problem, peaks)
    if most is None:
        return Verdict(status="valid", fit=fit, peak_bytes=peaks)
    device, over = most
    operation = peak_operation[device]
    message = (
        f"device {device} needs {exact_bytes(peaks[device])} when {operation.name} starts, "
        f"{exact_bytes(over)} more than it has"
    )
    witness = Witness(
        rule="memory",
        message=message,
        device=device,
        stage=operation.stage,
        micro_batch=0,
        instant_ns=operation.start % pattern.period,
        bytes_over=over,
    )
    return Verdict(status="invalid", witness=witness, fit=fit, peak_bytes=peaks)


def bytes_at(
    running: Operation, stages: Sequence[int], of_stage: Sequence[StageMemory], pattern: Pattern, every_ns: int
) -> int:
    """Bytes on a device of `stages` just after `running` has started. every_ns: from one of its micro-batches to
    the next, the period or as many periods as replicas take turns.
    """
    total = of_stage[running.stage].workspace
    for stage in stages:
        live = live_at(pattern.forward[stage].start, pattern.backward[stage].end, running.start, every_ns)
        if stage == running.stage:
            # A stage whose F and B take no time is still live while it runs.
            live = max(live, 1)
        total += of_stage[stage].at(live)
    return total


def live_at(start: int, end: int, instant: int, every_ns: int) -> int:
    """How many i have start + i * every_ns <= instant < end + i * every_ns."""
    return (instant - start) // every_ns - (instant - end) // every_ns


def finite_excess(plan: Plan, tasks: IndexedTasks) -> Witness | None:
    """The first stage that keeps more in flight than it declares; the witness names the F that is one too many.

    tasks: a valid order. A micro-batch is in flight from its F to its B (to its W where B is split). Lanes follow
    one another and end with nothing in flight, so replicas in turn are counted one by one.
    """
    for position in _declaring(plan):
        stage = plan.stages[position]
        rows = np.flatnonzero(tasks.stage == position)
        kind = tasks.kind[rows]
        live = np.cumsum((kind == F).astype(np.int64) - ((kind == B) | (kind == W)))
        over = live * stage.micro_batch > stage.in_flight
        if over.any():
            one_too_many = int(tasks.micro_batch[rows[np.argmax(over)]])
            return _witness(plan, position, int(live.max()), one_too_many)
    return None


def periodic_excess(plan: Plan, pattern: Pattern) -> Witness | None:
    """The first stage with more samples in flight in the steady state than it declares."""
    for position in _declaring(plan):
        forward, backward = pattern.forward[position], pattern.backward[position]
        # Only the start of F adds one. A stage whose F and B take no time still runs one.
        every_ns = pattern.period * plan.stages[position].turns
        live = max(1, live_at(forward.start, backward.end, forward.start, every_ns))
        if live * plan.stages[position].micro_batch > plan.stages[position].in_flight:
            return _witness(plan, position, live, None)
    return None


def _declaring(plan: Plan) -> Iterable[int]:
    return (position for position, stage in enumerate(plan.stages) if stage.in_flight)


def _witness(plan: Plan, position: int, live: int, micro_batch: int | None) -> Witness:
    stage = plan.stages[position]
    message = (
        f"stage {position} declares {stage.in_flight} samples in flight, "
        f"its schedule keeps {live * stage.micro_batch} ({live} micro-batches of {stage.micro_batch})"
    )
    return Witness(rule="shape", message=message, stage=position, micro_batch=micro_batch)


def trace_memory(problem: Problem, plan: Plan, trace: Trace) -> Verdict:
    """The peak of each device that has a timeline, and the first instant at which one exceeds its device.

    Copies of the pipeline without timelines in the trace are taken to hold what the first copy holds.
    """
    peaks: dict[int, int] = {}
    for timeline in trace.memory:
        witness = None
        if not 0 <= timeline.device < problem.cluster.size:
            witness = Witness(rule="shape", message=f"memory of device {timeline.device}, which is not there")
        elif timeline.device in peaks:
            witness = Witness(rule="shape", message=f"device {timeline.device} has two memory timelines")
        elif len(timeline.time_ns) != len(timeline.bytes) or list(timeline.time_ns) != sorted(timeline.time_ns):
            witness = Witness(rule="shape", message=f"memory of device {timeline.device}: instants do not ascend")
        if witness is not None:
            return Verdict(status="invalid", witness=witness)
        peaks[timeline.device] = timeline.peak_bytes
    for timeline in trace.memory:
        for device in devices_of_copies(plan, [timeline.device]):
            peaks.setdefault(device, timeline.peak_bytes)
    fit = fit_of(problem, peaks) if peaks else None
    worst = most_over(problem, peaks)
    if worst is None:
        return Verdict(status="valid", fit=fit, peak_bytes=peaks)
    device, over = worst
    timeline = next(t for t in trace.memory if t.peak_bytes == peaks[device])
    instant = timeline.time_ns[timeline.bytes.index(peaks[device])]
    message = (
        f"device {device} holds {exact_bytes(peaks[device])} at {exact_ns(instant)}, "
        f"{exact_bytes(over)} more than it has"
    )
    witness = Witness(rule="memory", message=message, device=device, instant_ns=instant, bytes_over=over)
    return Verdict(status="invalid", witness=witness, fit=fit, peak_bytes=peaks)
