"""Times of the tasks of a trace: durations, one at a time in a lane, precedences."""

import numpy as np

from pipebench.check.deadlock import Waits, waits
from pipebench.check.tasks import B, F, I, R, Tasks, W
from pipebench.check.traced import Traced
from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Rule, Witness


def wrong_duration(model: CostModel, plan: Plan, traced: Traced, simulated: bool) -> Witness | None:
    """The first task that ends before it starts; simulated: that lasts other than the cost model says.

    Simulated tasks of a pair start together, and each lasts as long as the pair.
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


def overlap_in_lane(traced: Traced, tolerance_ns: int) -> Witness | None:
    """The first task that starts before the one in front of it in its lane has ended.

    The tasks of a pair run at the same time: each comes behind the task in front of both.
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
    plan: Plan, traced: Traced, edges: list[tuple[int, int]], tolerance_ns: int
) -> Witness | None:
    """The first task that starts before one that it needs, in its own or another stage, has ended.

    Where a backward is split, the order of the lane already holds its parts together.
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


def _durations(model: CostModel, plan: Plan, tasks: Tasks) -> IntArray:
    table = np.zeros((len(plan.stages), 128), dtype=np.int64)
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


def _witness(traced: Traced, task: int, rule: Rule, what: str) -> Witness:
    return Witness(
        rule=rule,
        message=f"{traced.tasks.name(task)} {what}",
        stage=int(traced.tasks.stage[task]),
        micro_batch=int(traced.tasks.micro_batch[task]),
        instant_ns=int(traced.start_ns[task]),
    )
