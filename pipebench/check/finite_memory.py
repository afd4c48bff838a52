"""Memory of a finite schedule at every task boundary of every lane."""

from collections.abc import Mapping

import numpy as np

from pipebench.check.copies import devices_of_copies
from pipebench.check.fit import fit_of, most_over
from pipebench.check.tasks import F, R, Tasks
from pipebench.costs.formula import StageMemory
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.units import exact_bytes
from pipebench.domain.verdict import Verdict, Witness


def finite_memory(
    problem: Problem, model: CostModel, plan: Plan, schedule: FiniteSchedule, tasks: Tasks
) -> Verdict:
    """The peak of each device, and a witness where it exceeds the device."""
    edges = model.messages(plan)
    of_stage = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
    peaks: dict[int, int] = {}
    peak_task: dict[int, int] = {}
    for number, lane in enumerate(schedule.lanes):
        here = {
            position: of_stage[position]
            for position, stage in enumerate(plan.stages)
            if sorted(stage.devices) == sorted(lane.devices)
        }
        peak, task = lane_peak(tasks, number, here)
        for device in devices_of_copies(plan, lane.devices):
            peaks[device], peak_task[device] = peak, task
    fit = fit_of(problem, peaks)
    worst = most_over(problem, peaks)
    if worst is None:
        return Verdict(status="valid", fit=fit, peak_bytes=peaks)
    device, over = worst
    task = peak_task[device]
    position = task - int(tasks.lane_start[tasks.lane[task]])
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


def lane_peak(tasks: Tasks, lane: int, of_stage: Mapping[int, StageMemory]) -> tuple[int, int]:
    """The most bytes on a device of the lane and the first task during which it holds them.

    A micro-batch is live from the start of its F to the end of its B (W when split). During a task the
    workspace of its stage is added, during a pair those of both; during R none.
    """
    first, end = int(tasks.lane_start[lane]), int(tasks.lane_start[lane + 1])
    stages = tasks.stage[first:end].tolist()
    kinds = tasks.kind[first:end].tolist()
    releases = (tasks.release[tasks.slot[first:end]] == np.arange(first, end)).tolist()
    paired = np.flatnonzero(tasks.pair_end[first:end] > np.arange(first, end))
    beside = {task + k: of_stage[stages[task + 1 - k]].workspace for task in paired.tolist() for k in (0, 1)}
    live = dict.fromkeys(of_stage, 0)
    total = sum(memory.held for memory in of_stage.values())
    peak, peak_task = total, first
    for position, (stage, kind, releasing) in enumerate(zip(stages, kinds, releases, strict=True)):
        memory = of_stage[stage]
        if kind == F:
            total += memory.per_micro_batch + (memory.while_live if live[stage] == 0 else 0)
            live[stage] += 1
        during = total if kind == R else total + memory.workspace + beside.get(position, 0)
        if during > peak:
            peak, peak_task = during, first + position
        if releasing:
            live[stage] -= 1
            total -= memory.per_micro_batch + (memory.while_live if live[stage] == 0 else 0)
    return peak, peak_task
