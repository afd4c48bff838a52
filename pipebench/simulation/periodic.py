"""A periodic schedule from cold start, and the period to which it settles."""

import math
from collections.abc import Sequence

import numpy as np

from pipebench.costs.formula import StageMemory
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FORWARD, PeriodicSchedule
from pipebench.domain.trace import Trace
from pipebench.simulation.build import build_trace
from pipebench.simulation.deadlock import Standstill
from pipebench.simulation.loop import Instants, run_loop
from pipebench.simulation.network import FlowTable, flow_table
from pipebench.simulation.pace import exact_pace
from pipebench.simulation.stages import StageTable, stage_table
from pipebench.simulation.steady import mean_period, steady_period
from pipebench.simulation.task_times import TaskTimes
from pipebench.simulation.tasks import TaskTable, task_table
from pipebench.simulation.unroll import link_orders, operation_order, transfers_of_flows, unrolled_columns

FIRST_RUNS = 16
MOST_TASKS = 1 << 20


def simulate_periodic(
    model: CostModel,
    plan: Plan,
    schedule: PeriodicSchedule,
    memory: Sequence[StageMemory],
    known: TaskTimes | None = None,
) -> Trace:
    """Unroll the pattern from cold start.

    Every lane and every link keeps the order of the pattern's instants, and starts each task and message as
    soon as it can: the period is at most the pattern's when the pattern is valid. period_ns is what the run
    settles to, rounded up where it is no integer: the exact pace (exact_pace), because a run may settle after
    thousands of micro-batches only. Ports serve first come, first served, for which no exact pace is known: with
    them the run is doubled until it has settled (steady_period) or has MOST_TASKS tasks and messages; then the
    mean over its later half stands in, or the exact pace without ports if that is longer. known: times of tasks
    that stand in for those of the cost model.

    Raises Deadlock, InvalidSchedule, and UnsupportedProblem for a sync regime or unequal micro-batches.
    """
    _check_supported(model, plan)
    lag = _span(schedule)
    runs = FIRST_RUNS + 4 * lag
    while True:
        stages = stage_table(model, plan, runs * plan.stages[0].micro_batch, known)
        network = flow_table(model, plan, stages, queue_by_link=True)
        operations = operation_order(schedule, plan, stages, network)
        tasks = task_table(unrolled_columns(schedule, operations, stages), stages)
        order = link_orders(schedule, network, runs)
        instants = run_loop(stages, tasks, network, order)
        if instants.ended < len(tasks.lane):
            raise Standstill(stages, tasks, network, instants, order).error()
        pace = math.ceil(exact_pace(schedule, operations, stages, network))
        if network.ports:
            ends, group = _repetitions(schedule, stages, tasks, network, instants)
            settled = steady_period(ends, lag + 1, group)
            if settled is None and 2 * (len(tasks.lane) + network.messages) <= MOST_TASKS:
                runs *= 2
                continue
            pace = max(pace, mean_period(ends)) if settled is None else settled
        return build_trace(stages, tasks, network, instants, memory, pace)


def _check_supported(model: CostModel, plan: Plan) -> None:
    if model.problem.regime.mode == "sync":
        raise UnsupportedProblem(
            "a periodic schedule never flushes, and the regime is sync", "use a finite schedule or --regime async"
        )
    if len({stage.micro_batch for stage in plan.stages}) > 1:
        raise UnsupportedProblem("a periodic schedule needs the same micro-batch on all stages")


def _span(schedule: PeriodicSchedule) -> int:
    """Periods over which the pattern of one micro-batch extends."""
    shifts = (*schedule.shift, *schedule.transfer_shift)
    return max(shifts) - min(shifts) + 1


def _repetitions(
    schedule: PeriodicSchedule, stages: StageTable, tasks: TaskTable, network: FlowTable, instants: Instants
) -> tuple[IntArray, IntArray]:
    """Ends by repetition of the pattern, shape (repetitions, entries), and the connected parts of the entries.

    Repetition k holds every entry's micro-batch k - shift, so that each depends on earlier repetitions or on
    its own; only repetitions of which no entry is cut off are there.
    """
    runs = int(stages.count[0])
    row_end = instants.start + tasks.duration
    transfer = transfers_of_flows(schedule, network)
    linked = np.flatnonzero(transfer >= 0)
    ends: list[IntArray] = []
    for stage, letter in zip(schedule.stage, schedule.kinds, strict=True):
        slot = int(stages.offset[stage]) + (0 if letter == FORWARD else stages.slots)
        ends.append(row_end[tasks.slot_row[slot : slot + runs]])
    for flow in linked:
        first = int(network.base[flow])
        ends.append(instants.arrived[first : first + runs])
    shift = np.array([*schedule.shift, *(schedule.transfer_shift[transfer[flow]] for flow in linked)])
    latest, earliest = int(shift.max()), int(shift.min())
    by_run = np.stack(ends, axis=1)
    rows = np.arange(latest, runs + earliest)[:, None] - shift
    parts = _parts(stages, network)
    owner = [*schedule.stage, *(int(network.sender[flow]) for flow in linked)]
    return by_run[rows, np.arange(len(shift))], parts[np.array(owner)]


def _parts(stages: StageTable, network: FlowTable) -> IntArray:
    """For each stage the number of its part of the plan: stages joined by lanes or messages.

    Inside a part everything depends on everything else, because forwards and backwards run both ways.
    """
    part = stages.lane.copy()
    for sender, receiver in zip(network.sender, network.receiver, strict=True):
        part[part == part[sender]] = part[receiver]
    return part
