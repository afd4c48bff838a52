"""C4 across lanes: no lane waits for itself through others (GraphPipe section 4, C4)."""

from dataclasses import dataclass

import numpy as np

from pipebench.check.cycle import shortest_cycle
from pipebench.check.precedence import overlapping
from pipebench.check.tasks import Tasks
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
    the input gradient of `after`.
    """
    task, needed = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for before, after in edges:
        size, other = plan.stages[before].micro_batch, plan.stages[after].micro_batch
        first, second = overlapping(size, other, size * int(tasks.counts[before]))
        upper, lower = tasks.slots_of(before, first), tasks.slots_of(after, second)
        task += [tasks.forward[lower], tasks.gradient[upper]]
        needed += [tasks.forward[upper], tasks.gradient[lower]]
    return Waits(np.concatenate(task), np.concatenate(needed))


def deadlock(tasks: Tasks, between: Waits) -> Witness | None:
    """A shortest cycle of lanes whose next tasks wait for tasks that stand behind each other; None if none.

    Runs every lane as far as it goes, which finds a deadlock whatever the durations are.
    """
    reached = _run(tasks, between)
    blocked = np.flatnonzero(reached < tasks.lane_start[1:])
    if len(blocked) == 0:
        return None
    cause: list[dict[int, int]] = [{} for _ in reached]
    for lane in blocked.tolist():
        for needed in between.needed[between.task == reached[lane]]:
            if needed >= reached[tasks.lane[needed]]:
                cause[lane].setdefault(int(tasks.lane[needed]), int(needed))
    cycle = shortest_cycle([set(lanes) for lanes in cause])
    steps = []
    for lane, following in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        needed, head = cause[lane][following], int(reached[following])
        behind = "" if needed == head else f", which stands behind {tasks.name(head)}"
        steps.append(f"{tasks.name(int(reached[lane]))} waits for {tasks.name(needed)}{behind}")
    head = int(reached[cycle[0]])
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
    reached = tasks.lane_start[:-1].tolist()
    ends = tasks.lane_start[1:].tolist()
    todo = list(range(len(reached)))
    while todo:
        lane = todo.pop()
        task, end = reached[lane], ends[lane]
        while task < end and missing[task] == 0:
            for waiting in released[first[task] : first[task + 1]]:
                missing[waiting] -= 1
                if missing[waiting] == 0 and reached[lane_of[waiting]] == waiting and lane_of[waiting] != lane:
                    todo.append(lane_of[waiting])
            task += 1
            reached[lane] = task
    return np.array(reached, dtype=np.int64)
