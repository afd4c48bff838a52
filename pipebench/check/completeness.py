"""Every task of a plan exactly once."""

import numpy as np

from pipebench.check.tasks import B, F, I, R, Tasks, W
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.verdict import Witness


def out_of_range(tasks: Tasks) -> Witness | None:
    """The first task of a stage or micro-batch that the plan does not have (R names micro-batch 0)."""
    stages = len(tasks.counts)
    known = (tasks.stage >= 0) & (tasks.stage < stages)
    allowed = np.where(tasks.kind == R, 1, tasks.counts[np.where(known, tasks.stage, 0)])
    wrong = ~known | (tasks.micro_batch < 0) | (tasks.micro_batch >= allowed)
    if not wrong.any():
        return None
    task = int(np.argmax(wrong))
    stage, micro_batch = int(tasks.stage[task]), int(tasks.micro_batch[task])
    message = (
        f"stage {stage} has no micro-batch {micro_batch} for {chr(tasks.kind[task])}"
        if known[task]
        else f"the plan has no stage {stage}"
    )
    return Witness(rule="shape", message=message, stage=stage, micro_batch=micro_batch)


def missing_or_repeated(tasks: Tasks) -> Witness | None:
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


def wrong_all_reduce(model: CostModel, plan: Plan, tasks: Tasks) -> Witness | None:
    """The first stage with two R, or without one where the all-reduce takes time."""
    found = np.bincount(tasks.stage[tasks.kind == R], minlength=len(plan.stages))
    for position, stage in enumerate(plan.stages):
        needed = model.needs_update_task(stage, plan)
        if found[position] > 1 or (needed and found[position] == 0):
            message = f"stage {position} has {found[position]} R, it needs {'one' if needed else 'at most one'}"
            return Witness(rule="coverage", message=message, stage=position)
    return None


def _count(tasks: Tasks, kind: int) -> IntArray:
    return np.bincount(tasks.slot[tasks.kind == kind], minlength=int(tasks.first_slot[-1]))
