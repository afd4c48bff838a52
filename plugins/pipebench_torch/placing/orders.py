"""The order of the tasks of each process, the mini-batches of a run and how far its weights lag behind."""

from collections.abc import Sequence

import numpy as np

from pipebench.check.periodic import read_pattern
from pipebench.check.schedule import Waits, deadlock, waiting_stages, waits
from pipebench.check.tasks import finite_tasks
from pipebench.costs.model import CostModel
from pipebench.costs.tasks import R, kind_letters
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, WEIGHT_GRADIENT, PeriodicSchedule, Schedule
from pipebench.domain.verdict import Witness
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

    Stages whose replicas take micro-batches in turn are left to `delay_in_turn`: no lane has all their backwards.

    Mini-batch t runs on the weights after t - delay updates. The update of mini-batch u needs the last backward of
    u. On every stage that must be before the first forward of mini-batch u + 1 + delay (Narayanan et al.,
    Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 3.1: delay 1).
    """
    delay = 0
    for tasks in orders:
        done: dict[int, int] = {}
        finished: dict[int, int] = {}
        for stage, micro_batch, kind in tasks:
            if layout.plan.stages[stage].turns > 1:
                continue
            if kind in (BACKWARD, WEIGHT_GRADIENT):
                done[stage] = done.get(stage, 0) + 1
                finished[stage] = done[stage] * layout.plan.stages[stage].micro_batch // layout.samples
            elif kind == FORWARD:
                delay = max(delay, layout.round_of(stage, micro_batch) - finished.get(stage, 0))
    return delay


def delay_in_turn(problem: Problem, layout: Layout, schedule: PeriodicSchedule) -> int:
    """The least delay for stages whose replicas take micro-batches in turn; 0 where there are none.

    By the times of the pattern the last backward of mini-batch u has ended, on whichever replica, before the first
    forward of mini-batch u + 1 + delay starts on any. No replica then waits for itself: the tasks in order of time
    are an order in which all can run.
    """
    pattern = read_pattern(problem, CostModel(problem), layout.plan, schedule)
    if isinstance(pattern, Witness):
        raise PipebenchError(pattern.message)
    delay = 0
    for position, stage in enumerate(layout.plan.stages):
        if stage.turns > 1:
            lives_ns = pattern.backward[position].end - pattern.forward[position].start
            round_ns = pattern.period * layout.count_of_round(position)
            delay = max(delay, -((pattern.period - lives_ns) // round_ns))
    return delay


def refuse_crossed_sums(problem: Problem, plan: Plan, schedule: Schedule) -> None:
    """Raises UnsupportedProblem where all-reduces of replicas in turn would wait for each other for ever.

    Here an all-reduce lasts until the last replica has come to its own. In a schedule it waits only for their last
    backwards.
    """
    if isinstance(schedule, PeriodicSchedule) or not plan.takes_turns:
        return
    tasks = finite_tasks(problem, plan, schedule)
    between = waits(plan, tasks, waiting_stages(CostModel(problem), plan))
    pairs: list[tuple[int, int]] = []
    for position, stage in enumerate(plan.stages):
        if stage.turns == 1:
            continue
        own = np.flatnonzero((tasks.kind == R) & (tasks.stage == position)).tolist()
        if own and len(own) < stage.turns:
            raise UnsupportedProblem(
                f"{len(own)} of the {stage.turns} replicas of stage {position} have an all-reduce: torch adds the "
                "gradients of all or of none",
                "schedule an R for each replica",
            )
        fronts = [each - 1 for each in own if each > tasks.first[tasks.lane[each]]]
        pairs += [(each, front) for each in own for front in fronts if front != each - 1]
    task, needed = np.array(pairs, np.int64).reshape(-1, 2).T
    joined = Waits(np.concatenate((between.task, task)), np.concatenate((between.needed, needed)))
    witness = deadlock(tasks, joined)
    if witness is not None:
        raise UnsupportedProblem(
            f"replicas in turn would wait for each other's all-reduces: {witness.message}",
            "schedule the all-reduces of all replicas in one order, behind the backwards",
        )


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

    Raises UnsupportedProblem where stages share a weight, and where all-reduces wait for each other.
    """
    refuse_split_weights(problem.profile.graph, plan)
    refuse_crossed_sums(problem, plan, schedule)
    if not isinstance(schedule, PeriodicSchedule):
        return layout_of(plan, problem.mini_batch), 0
    rounds = max(3, options.warmup + options.iterations)
    while True:
        layout = layout_of(plan, problem.mini_batch, rounds)
        orders = list(lane_orders(problem, plan, schedule, layout).values())
        delay = max(delay_of(layout, orders), delay_in_turn(problem, layout, schedule))
        # between the filling and the last end, each replica in turn has had a micro-batch
        counts = [layout.count_of_round(position) for position in range(len(plan.stages))]
        turns = max(-(-stage.turns // count) for stage, count in zip(plan.stages, counts, strict=True))
        needed = delay + 2 + turns
        if rounds >= needed:
            return layout, delay
        rounds = needed
