"""C4 across lanes: no lane waits for itself through others (GraphPipe section 4, C4)."""

from dataclasses import dataclass

import numpy as np

from pipebench.check.cycle import shortest_cycle
from pipebench.check.precedence import overlapping
from pipebench.check.tasks import R, Tasks
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.verdict import Witness


@dataclass(frozen=True, slots=True)
class Waits:
    """Pairs of task numbers: task[i] cannot start before needed[i] ends."""

    task: IntArray
    needed: IntArray


def waits(plan: Plan, tasks: Tasks, edges: list[tuple[int, int]]) -> Waits:
    """What tasks wait for between stages, over all micro-batches that share samples.

    An edge (before, after) makes F of `after` wait for F of `before`, and the backward of `before` wait for
    the input gradient of `after`. R of a stage waits for the last backward of the stages that hold the same
    operators in other pipelines (its own stands before it in its lane).
    """
    task, needed = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for before, after in edges:
        size, other = plan.stages[before].micro_batch, plan.stages[after].micro_batch
        first, second = overlapping(size, other, size * int(tasks.counts[before]))
        upper, lower = tasks.slots_of(before, first), tasks.slots_of(after, second)
        task += [tasks.forward[lower], tasks.gradient[upper]]
        needed += [tasks.forward[upper], tasks.gradient[lower]]
    for reduce in np.flatnonzero(tasks.kind == R).tolist() if plan.pipelines > 1 else ():
        stage = int(tasks.stage[reduce])
        others = [mirror for mirror in plan.mirrors(stage) if mirror != stage]
        task.append(np.full(len(others), reduce))
        needed.append(tasks.last_release[others])
    return Waits(np.concatenate(task), np.concatenate(needed))


def deadlock(tasks: Tasks, between: Waits) -> Witness | None:
    """A shortest cycle of lanes whose next tasks wait for tasks that stand behind each other; None if none.

    Runs every lane as far as it goes, which finds a deadlock whatever the durations are. The tasks of a pair run
    when nothing that one of them needs is missing.
    """
    reached = _run(tasks, between)
    blocked = np.flatnonzero(reached < tasks.lane_start[1:])
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


def _run(tasks: Tasks, between: Waits) -> IntArray:
    """For each lane the first task that can never start, or its end."""
    missing = np.bincount(between.task, minlength=len(tasks.stage)).tolist()
    order = np.argsort(between.needed, kind="stable")
    released = between.task[order].tolist()
    first = np.searchsorted(between.needed[order], np.arange(len(tasks.stage) + 1)).tolist()
    lane_of = tasks.lane.tolist()
    start_of, end_of = tasks.pair_start.tolist(), tasks.pair_end.tolist()
    reached = tasks.lane_start[:-1].tolist()
    ends = tasks.lane_start[1:].tolist()
    todo = list(range(len(reached)))
    while todo:
        lane = todo.pop()
        task, end = reached[lane], ends[lane]
        while task < end and missing[task] == missing[end_of[task]] == 0:
            after = end_of[task] + 1
            for waiting in released[first[task] : first[after]]:
                missing[waiting] -= 1
                if (
                    missing[waiting] == 0
                    and reached[lane_of[waiting]] == start_of[waiting]
                    and lane_of[waiting] != lane
                ):
                    todo.append(lane_of[waiting])
            task = reached[lane] = after
    return np.array(reached, dtype=np.int64)
