"""Whether a schedule is valid: lanes, every task once, order in a lane, deadlock, then memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from pipebench.check.memory import finite_excess, finite_memory, periodic_excess, periodic_memory
from pipebench.check.periodic import broken_dependency, busy_twice, overrun_buffer, read_pattern
from pipebench.check.plan import check_plan
from pipebench.check.structure import shortest_cycle
from pipebench.check.tasks import IndexedTasks, finite_tasks
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import B, F, I, R, W
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import TASK_KINDS, FiniteSchedule, Lane, PeriodicSchedule, Schedule
from pipebench.domain.verdict import Verdict, Witness, with_witness


def wrong_lane(plan: Plan, lanes: Sequence[tuple[Sequence[int], Iterable[tuple[int, int]]]]) -> Witness | None:
    """The first lane that shares a device with another, or runs a stage or a micro-batch of other devices.

    lanes: the device ids of each lane and what it runs, as pairs of stage and micro-batch.
    """
    owner: dict[int, int] = {}
    for number, (devices, tasks) in enumerate(lanes):
        for device in devices:
            if device in owner:
                message = f"device {device} is in lanes {owner[device]} and {number}"
                return Witness(rule="shape", message=message, device=device)
            owner[device] = number
        here = sorted(devices)
        for stage, turn in sorted({(stage, i % _turns(plan, stage)) for stage, i in tasks}):
            if not 0 <= stage < len(plan.stages):
                continue
            expected = plan.stages[stage].device_sets[turn]
            if sorted(expected) != here:
                whose = "" if plan.stages[stage].turns == 1 else f", replica {turn},"
                message = (
                    f"lane {number} of devices {tuple(devices)} runs stage {stage}{whose} of devices {expected}"
                )
                return Witness(rule="shape", message=message, stage=stage)
    return None


def _stages_and_turns(plan: Plan, lane: Lane) -> Iterable[tuple[int, int]]:
    """Pairs of stage and micro-batch of a lane: one of each stage where no replicas take micro-batches in turn."""
    if plan.takes_turns:
        return zip(lane.stage, lane.micro_batch, strict=True)
    return ((stage, 0) for stage in set(lane.stage))


def _turns(plan: Plan, stage: int) -> int:
    return plan.stages[stage].turns if 0 <= stage < len(plan.stages) else 1


def out_of_range(tasks: IndexedTasks) -> Witness | None:
    """The first task of a stage or micro-batch that the plan does not have (R names the turn)."""
    stages = len(tasks.counts)
    known = (tasks.stage >= 0) & (tasks.stage < stages)
    stage_of = np.where(known, tasks.stage, 0)
    allowed = np.where(tasks.kind == R, tasks.turns[stage_of], tasks.counts[stage_of])
    wrong = ~known | (tasks.micro_batch < 0) | (tasks.micro_batch >= allowed)
    if not wrong.any():
        return None
    task = int(np.argmax(wrong))
    stage, micro_batch = int(tasks.stage[task]), int(tasks.micro_batch[task])
    message = (
        f"stage {stage} has no micro-batch {micro_batch} for {TASK_KINDS[tasks.kind[task]]}"
        if known[task]
        else f"the plan has no stage {stage}"
    )
    return Witness(rule="shape", message=message, stage=stage, micro_batch=micro_batch)


def missing_or_repeated(tasks: IndexedTasks) -> Witness | None:
    """The first (stage, micro-batch) without exactly one F and either one B or one I and one W."""
    short = np.bincount(tasks.stage, minlength=len(tasks.counts)) < tasks.counts
    if short.any():
        # Said before tables are made that a mini-batch of many samples would make too large.
        stage = int(np.argmax(short))
        message = f"stage {stage} lacks tasks: it has {tasks.counts[stage]} micro-batches"
        return Witness(rule="coverage", message=message, stage=stage)
    forward, whole, split, weight = (_count(tasks, kind) for kind in (F, B, I, W))
    wrong = (forward != 1) | (whole + split != 1) | (weight != split)
    if not wrong.any():
        return None
    slot = int(np.argmax(wrong))
    stage, micro_batch = tasks.pair_of(slot)
    has = {"F": forward, "B": whole, "I": split, "W": weight}
    counts = ", ".join(f"{count[slot]} {kind}" for kind, count in has.items())
    message = f"stage {stage}, micro-batch {micro_batch}: {counts} (needs one F and one B, or one I and one W)"
    return Witness(rule="coverage", message=message, stage=stage, micro_batch=micro_batch)


def wrong_all_reduce(model: CostModel, plan: Plan, tasks: IndexedTasks) -> Witness | None:
    """The first stage, or replica in turn, with two R, or without one where the all-reduce takes time."""
    counted = np.bincount(tasks.worker[tasks.kind == R], minlength=int(tasks.first_worker[-1]))
    for position, stage in enumerate(plan.stages):
        needed = model.needs_update_task(stage, plan)
        for turn, worker in enumerate(tasks.workers_of(position)):
            found = int(counted[worker])
            if found > 1 or (needed and found == 0):
                who = f"stage {position}" if stage.turns == 1 else f"replica {turn} of stage {position}"
                message = f"{who} has {found} R, it needs {'one' if needed else 'at most one'}"
                return Witness(rule="coverage", message=message, stage=position)
    return None


def _count(tasks: IndexedTasks, kind: int) -> IntArray:
    return np.bincount(tasks.slot[tasks.kind == kind], minlength=int(tasks.first_slot[-1]))


def wrong_lane_order(tasks: IndexedTasks) -> Witness | None:
    """The first task that stands before one that it needs in its own stage (GraphPipe section 4, C4)."""
    for needs, needed in ((tasks.gradient, tasks.forward), (tasks.release, tasks.gradient)):
        wrong = needs < needed
        if wrong.any():
            slot = int(np.argmax(wrong))
            return _witness(tasks, int(needs[slot]), int(needed[slot]))
    last_backward = tasks.last_release
    reduces = np.flatnonzero(tasks.kind == R)
    early = reduces[reduces < last_backward[tasks.worker[reduces]]]
    if len(early):
        return _witness(tasks, int(early[0]), int(last_backward[tasks.worker[early[0]]]))
    return None


def _witness(tasks: IndexedTasks, early: int, needed: int) -> Witness:
    message = f"{tasks.name(early)} stands before {tasks.name(needed)}, which it needs"
    return Witness(
        rule="C4", message=message, stage=int(tasks.stage[early]), micro_batch=int(tasks.micro_batch[early])
    )


def waiting_stages(model: CostModel, plan: Plan) -> list[tuple[int, int]]:
    """Pairs (before, after) of stages, ascending: F of `after` waits for F of `before`, B the other way round.

    They come from the tensors that cross (hop by hop when relayed) and from the order edges.
    """
    return sorted({(m.source, m.target) for m in model.messages(plan)} | set(plan.order_edges))


def overlapping(first: int, second: int, samples: int) -> tuple[IntArray, IntArray]:
    """All pairs of micro-batches (i of size `first`, j of size `second`) that share a sample.

    Cut the samples at the boundaries of both sizes: each piece belongs to exactly one pair.
    """
    starts = np.union1d(np.arange(0, samples, first), np.arange(0, samples, second))
    return starts // first, starts // second


@dataclass(frozen=True, slots=True)
class Waits:
    """Pairs of task numbers: task[i] cannot start before needed[i] ends."""

    task: IntArray
    needed: IntArray


def waits(plan: Plan, tasks: IndexedTasks, edges: list[tuple[int, int]]) -> Waits:
    """What tasks wait for between stages, over all micro-batches that share samples.

    An edge (before, after) makes F of `after` wait for F of `before`, and the backward of `before` wait for the
    input gradient of `after`.
    R of a stage waits for the last backwards of the replicas that take micro-batches in turn, and of the stages
    that hold the same operators in other pipelines. The last backward of its own lane stands before it.
    """
    task, needed = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for before, after in edges:
        size, other = plan.stages[before].micro_batch, plan.stages[after].micro_batch
        first, second = overlapping(size, other, size * int(tasks.counts[before]))
        upper, lower = tasks.slots_of(before, first), tasks.slots_of(after, second)
        task += [tasks.forward[lower], tasks.gradient[upper]]
        needed += [tasks.forward[upper], tasks.gradient[lower]]
    together = plan.pipelines > 1 or plan.takes_turns
    for reduce in np.flatnonzero(tasks.kind == R).tolist() if together else ():
        mirrors = plan.mirrors(int(tasks.stage[reduce]))
        workers = [each for mirror in mirrors for each in tasks.workers_of(mirror) if each != tasks.worker[reduce]]
        last = tasks.last_release[workers]
        task.append(np.full(int((last >= 0).sum()), reduce))
        needed.append(last[last >= 0])
    return Waits(np.concatenate(task), np.concatenate(needed))


def deadlock(tasks: IndexedTasks, between: Waits) -> Witness | None:
    """A shortest cycle of lanes whose next tasks wait for tasks that stand behind each other; None if none.

    Every lane runs as far as it can. This finds a deadlock whatever the durations are. A pair runs when the inputs
    of both its tasks are there.
    """
    reached = _run(tasks, between)
    blocked = np.flatnonzero(reached < tasks.first[1:])
    if len(blocked) == 0:
        return None
    cause: list[dict[int, tuple[int, int]]] = [{} for _ in reached]
    for lane in blocked.tolist():
        stands = tasks.pair_start[between.task] == reached[lane]
        for task, needed in zip(between.task[stands].tolist(), between.needed[stands].tolist(), strict=True):
            if needed >= reached[tasks.lane[needed]]:
                cause[lane].setdefault(int(tasks.lane[needed]), (task, needed))
    cycle = shortest_cycle([set(lanes) for lanes in cause])
    pairs = [cause[lane][behind] for lane, behind in zip(cycle, cycle[1:] + cycle[:1], strict=True)]
    steps = []
    for (task, needed), (standing, _) in zip(pairs, pairs[1:] + pairs[:1], strict=True):
        together = tasks.pair_start[needed] == tasks.pair_start[standing]
        how = "runs at the same time as" if together else "stands behind"
        where = "" if needed == standing else f", which {how} {tasks.name(standing)}"
        steps.append(f"{tasks.name(task)} waits for {tasks.name(needed)}{where}")
    head = pairs[0][0]
    return Witness(
        rule="C4",
        message=f"deadlock: {'; '.join(steps)}",
        stage=int(tasks.stage[head]),
        micro_batch=int(tasks.micro_batch[head]),
    )


def _run(tasks: IndexedTasks, between: Waits) -> IntArray:
    """For each lane the first task that can never start, or its end.

    A lane runs on until it waits for a task of another one; that one wakes it. What stands before a task on its
    own lane is nothing to wait for.
    """
    start = tasks.pair_start[between.task]
    waited = (tasks.lane[between.needed] != tasks.lane[start]) | (between.needed >= start)
    start, needs = start[waited], between.needed[waited]
    order = np.argsort(start, kind="stable")
    waits_of = np.searchsorted(start[order], tasks.first).tolist()
    waiting, needed, needed_lane = (each[order].tolist() for each in (start, needs, tasks.lane[needs]))
    reached, ends = tasks.first[:-1].tolist(), tasks.first[1:].tolist()
    at, last = waits_of[:-1], waits_of[1:]
    asleep: list[list[tuple[int, int]]] = [[] for _ in reached]
    todo = list(range(len(reached)))
    while todo:
        lane = todo.pop()
        wait, end = at[lane], last[lane]
        while wait < end and needed[wait] < reached[needed_lane[wait]]:
            wait += 1
        at[lane] = wait
        reached[lane] = task = waiting[wait] if wait < end else ends[lane]
        if wait < end:
            heappush(asleep[needed_lane[wait]], (needed[wait], lane))
        sleepers = asleep[lane]
        while sleepers and sleepers[0][0] < task:
            todo.append(heappop(sleepers)[1])
    return np.array(reached, dtype=np.int64)


def broken_order(model: CostModel, plan: Plan, schedule: FiniteSchedule, tasks: IndexedTasks) -> Witness | None:
    """The first rule that the order of tasks breaks: lanes, every task once, order in a lane, deadlock."""
    return (
        wrong_lane(plan, [(each.devices, _stages_and_turns(plan, each)) for each in schedule.lanes])
        or out_of_range(tasks)
        or missing_or_repeated(tasks)
        or wrong_all_reduce(model, plan, tasks)
        or wrong_lane_order(tasks)
        or deadlock(tasks, waits(plan, tasks, waiting_stages(model, plan)))
    )


def check_periodic(
    problem: Problem, model: CostModel, plan: Plan, schedule: PeriodicSchedule, *, strict_buffers: bool
) -> Verdict:
    """The verdict on a periodic schedule of a plan that `check_plan` found valid."""
    pattern = read_pattern(problem, model, plan, schedule)
    if isinstance(pattern, Witness):
        return Verdict(status="invalid", witness=pattern)
    edges = waiting_stages(model, plan)
    witness = broken_dependency(pattern, edges) or busy_twice(plan, pattern, problem.cluster.link_mode)
    if witness is None and strict_buffers:
        tensors = sorted({(m.source, m.target) for m in model.messages(plan)})
        witness = overrun_buffer(plan, pattern, tensors)
    if witness is not None:
        return Verdict(status="invalid", witness=witness)
    return with_witness(periodic_memory(problem, model, plan, pattern), periodic_excess(plan, pattern))


def check_schedule(problem: Problem, plan: Plan, schedule: Schedule, *, strict_buffers: bool = False) -> Verdict:
    """The verdict on a plan with its schedule.

    The order of the checks: `check_plan`, the order of tasks, memory, the declared in_flight of the stages.
    Finite schedules: lanes, every task once, C4 with sample coverage, memory at every task boundary (in async the
    async memory).
    Periodic schedules (async only): dependencies with index shifts, one operation at a time on every device and
    link, memory over one period.
    strict_buffers: each buffer of a periodic transfer holds one tensor only (`overrun_buffer`).
    """
    verdict = check_plan(problem, plan)
    if verdict.status != "valid":
        return verdict
    model = CostModel(problem)
    if isinstance(schedule, PeriodicSchedule):
        return check_periodic(problem, model, plan, schedule, strict_buffers=strict_buffers)
    tasks = finite_tasks(problem, plan, schedule)
    witness = broken_order(model, plan, schedule, tasks)
    if witness is not None:
        return Verdict(status="invalid", witness=witness)
    return with_witness(finite_memory(problem, model, plan, schedule, tasks), finite_excess(plan, tasks))
