"""The order of the tasks of each process, the mini-batches of a run and how far its weights lag behind."""

from collections.abc import Sequence

import numpy as np

from pipebench.costs.model import CostModel
from pipebench.costs.tasks import kind_letters
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, WEIGHT_GRADIENT, PeriodicSchedule, Schedule
from pipebench.simulation.network import flow_table
from pipebench.simulation.stages import stage_table
from pipebench.simulation.unroll import operation_order, unrolled_tasks
from pipebench_torch.placing.layout import Layout, layout_of
from pipebench_torch.plugin import ExecutorOptions

Task = tuple[int, int, str]
"""Stage, micro-batch, kind (a letter of TASK_KINDS)."""


def lane_orders(
    problem: Problem, plan: Plan, schedule: Schedule, layout: Layout
) -> dict[frozenset[int], list[Task]]:
    """For each set of devices its tasks in order; a periodic pattern is unrolled over the rounds."""
    if isinstance(schedule, PeriodicSchedule):
        return _unroll(problem, plan, schedule, layout)
    return {
        frozenset(lane.devices): list(zip(lane.stage, lane.micro_batch, lane.kinds, strict=True))
        for lane in schedule.lanes
    }


def _unroll(
    problem: Problem, plan: Plan, schedule: PeriodicSchedule, layout: Layout
) -> dict[frozenset[int], list[Task]]:
    model = CostModel(problem)
    stages = stage_table(model, plan, layout.rounds * layout.samples)
    network = flow_table(model, plan, stages, queue_by_link=True)
    columns = unrolled_tasks(schedule, operation_order(schedule, plan, stages, network), stages)
    letters = kind_letters(columns.kind)
    found: dict[frozenset[int], list[Task]] = {}
    for lane, devices in enumerate(columns.devices):
        rows = np.arange(columns.first[lane], columns.first[lane + 1])
        found[frozenset(devices)] = [
            (int(columns.stage[row]), int(columns.micro_batch[row]), letters[row]) for row in rows
        ]
    return found


def delay_of(layout: Layout, orders: Sequence[list[Task]]) -> int:
    """The least delay in mini-batches with which all stages can use the same version of the weights.

    Mini-batch t runs on the weights after t - delay updates. The update of mini-batch u needs the last backward of
    u. On every stage that must be before the first forward of mini-batch u + 1 + delay (Narayanan et al.,
    Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 3.1: delay 1).
    """
    delay = 0
    for tasks in orders:
        done: dict[int, int] = {}
        finished: dict[int, int] = {}
        for stage, micro_batch, kind in tasks:
            if kind in (BACKWARD, WEIGHT_GRADIENT):
                done[stage] = done.get(stage, 0) + 1
                finished[stage] = done[stage] * layout.plan.stages[stage].micro_batch // layout.samples
            elif kind == FORWARD:
                delay = max(delay, layout.round_of(stage, micro_batch) - finished.get(stage, 0))
    return delay


def refuse_split_weights(graph: OperatorGraph, plan: Plan) -> None:
    """Raises UnsupportedProblem where a weight is used in two stages: their gradients would have to be added."""
    home: dict[str, int] = {}
    for position, stage in enumerate(plan.stages):
        for operator in stage.operators:
            for name in graph.operators[graph.index[operator]].parameters:
                if home.setdefault(name, position) != position:
                    raise UnsupportedProblem(
                        f"parameter {name!r} is used in stages {home[name]} and {position}: torch does not add "
                        "gradients of a weight over stages",
                        "keep the operators that use it in one stage",
                    )


def rounds_of(problem: Problem, plan: Plan, schedule: Schedule, options: ExecutorOptions) -> tuple[Layout, int]:
    """The layout and the delay: a finite schedule is one mini-batch, a periodic one runs over several.

    Raises UnsupportedProblem where stages share a weight.
    """
    refuse_split_weights(problem.profile.graph, plan)
    if not isinstance(schedule, PeriodicSchedule):
        return layout_of(plan, problem.mini_batch), 0
    rounds = max(3, options.warmup + options.iterations)
    while True:
        layout = layout_of(plan, problem.mini_batch, rounds)
        delay = delay_of(layout, list(lane_orders(problem, plan, schedule, layout).values()))
        if rounds >= delay + 3:
            return layout, delay
        rounds = delay + 3
