"""Times of the tasks of a trace: durations, one at a time in a lane, precedences."""

import numpy as np

from pipebench.check.deadlock import Waits, waits
from pipebench.check.tasks import B, F, I, R, Tasks, W
from pipebench.check.traced import Traced
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Rule, Witness


def wrong_duration(model: CostModel, plan: Plan, traced: Traced, simulated: bool) -> Witness | None:
    """The first task that ends before it starts; simulated: that lasts other than the cost model says."""
    lasted = traced.end_ns - traced.start_ns
    expected = _durations(model, plan, traced.tasks)
    wrong = lasted != expected if simulated else lasted < 0
    if not wrong.any():
        return None
    task = int(np.argmax(wrong))
    wanted = f"it takes {exact_ns(expected[task])}" if simulated else "it ends before it starts"
    return _witness(traced, task, "shape", f"lasts {exact_ns(lasted[task])}, {wanted}")


def overlap_in_lane(traced: Traced, tolerance_ns: int) -> Witness | None:
    """The first task that starts before the one in front of it in its lane has ended."""
    same_lane = traced.tasks.lane[1:] == traced.tasks.lane[:-1]
    early = same_lane & (traced.start_ns[1:] < traced.end_ns[:-1] - tolerance_ns)
    if not early.any():
        return None
    before = int(np.argmax(early))
    ended = f"{traced.tasks.name(before)} before it in the lane ends at {exact_ns(traced.end_ns[before])}"
    return _witness(traced, before + 1, "resource", f"starts at {exact_ns(traced.start_ns[before + 1])}, {ended}")


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
    return durations


def _witness(traced: Traced, task: int, rule: Rule, what: str) -> Witness:
    return Witness(
        rule=rule,
        message=f"{traced.tasks.name(task)} {what}",
        stage=int(traced.tasks.stage[task]),
        micro_batch=int(traced.tasks.micro_batch[task]),
        instant_ns=int(traced.start_ns[task]),
    )
