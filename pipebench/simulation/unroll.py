"""A periodic pattern unrolled: the order of the tasks on each lane and of the messages on each link."""

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import F, Tasks, first_rows, kind_codes
from pipebench.domain.limits import MOST_UNROLLED_TASKS
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.topology import topological_order
from pipebench.simulation.network import FlowTable
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import InvalidSchedule


def kinds_of(schedule: PeriodicSchedule) -> IntArray:
    """The kind of each operation of the pattern."""
    return kind_codes(schedule.kinds)


def operation_order(schedule: PeriodicSchedule, plan: Plan, stages: StageTable, network: FlowTable) -> IntArray:
    """Positions of the operations, lane after lane, each lane in its order within one period.

    Of replicas in turn, the lane of the first stands for all.

    They are ordered by start. At one instant the shorter operation comes first (one of the two takes no time),
    then the order is that of the stage graph.
    Raises InvalidSchedule unless the pattern has one F and one B of every stage.
    """
    _check_operations(schedule, plan)
    kind, stage = kinds_of(schedule), np.array(schedule.stage, np.int64)
    depth = _depths(plan, network)[stage]
    along = np.where(kind == F, depth, 2 * len(plan.stages) - depth)
    return np.lexsort(
        (along, stages.duration[kind, stage], np.array(schedule.start_ns), first_lane(stages, stage))
    )


def first_lane(stages: StageTable, stage: IntArray) -> IntArray:
    """The lane of each stage, of its first replica where they take micro-batches in turn."""
    return stages.lane_of(stage, np.zeros_like(stage))


def unrolled_tasks(schedule: PeriodicSchedule, order: IntArray, stages: StageTable) -> Tasks:
    """The tasks of the stages' micro-batches, period after period, each in this order of operations.

    Raises InvalidSchedule for more than MOST_UNROLLED_TASKS.
    """
    runs = int(stages.count[0])
    if runs * len(order) > MOST_UNROLLED_TASKS:
        raise InvalidSchedule(
            f"it takes {runs * len(order)} tasks until every stage has run, at most {MOST_UNROLLED_TASKS} run"
        )
    stage = np.array(schedule.stage, np.int64)[order]
    kind = kinds_of(schedule)[order]
    period = np.array(schedule.shift, np.int64)[order][:, None] + np.arange(runs)
    lane = stages.lane_of(np.repeat(stage, runs), np.tile(np.arange(runs), len(order)))
    rows = np.lexsort((np.repeat(np.arange(len(order)), runs), period.ravel(), lane))
    sizes = np.bincount(lane, minlength=len(stages.lanes))
    return Tasks(
        devices=stages.lanes,
        first=first_rows(sizes),
        stage=np.repeat(stage, runs)[rows],
        micro_batch=np.tile(np.arange(runs), len(order))[rows],
        kind=np.repeat(kind, runs)[rows],
    )


def flow_order(schedule: PeriodicSchedule, network: FlowTable) -> list[IntArray]:
    """For each link its flows in their order within one period. Tensors of one transfer keep their own order.

    Raises InvalidSchedule for a flow that occupies a link and that the pattern does not transfer.
    """
    transfer = transfers_of_flows(schedule, network)
    start = np.array(schedule.transfer_start_ns, np.int64)
    links = [np.flatnonzero(network.link == link) for link in range(network.links)]
    return [flows[np.argsort(start[transfer[flows]], kind="stable")] for flows in links]


def link_orders(schedule: PeriodicSchedule, network: FlowTable) -> list[IntArray]:
    """For each link all its messages, period after period."""
    transfer = transfers_of_flows(schedule, network)
    shift = np.array(schedule.transfer_shift, np.int64)
    orders: list[IntArray] = []
    for flows in flow_order(schedule, network):
        # All flows of a link have the same turns, so as many messages.
        position = np.arange(network.count[flows[0]])
        turn, turns = network.turn[flows][:, None], network.turns[flows][:, None]
        period = shift[transfer[flows]][:, None] + turn + turns * position
        message = network.base[flows][:, None] + position
        rows = np.lexsort((np.repeat(np.arange(len(flows)), len(position)), period.ravel()))
        orders.append(message.ravel()[rows])
    return orders


def transfers_of_flows(schedule: PeriodicSchedule, network: FlowTable) -> IntArray:
    """For each flow the position of its transfer in the pattern, -1 for one that occupies no link."""
    known: dict[tuple[int, int, int], int] = {}
    columns = zip(schedule.source, schedule.target, schedule.transfer_kinds, strict=True)
    for position, (source, target, letter) in enumerate(columns):
        if known.setdefault((source, target, int(letter == "B")), position) != position:
            raise InvalidSchedule(f"the pattern transfers {letter} from stage {source} to {target} twice")
    found = np.full(len(network.sender), -1, np.int64)
    for flow in np.flatnonzero(network.link >= 0):
        key = (int(network.sender[flow]), int(network.receiver[flow]), int(network.backward[flow]))
        if key not in known:
            letter = "FB"[key[2]]
            raise InvalidSchedule(f"the pattern lacks the transfer {letter} from stage {key[0]} to stage {key[1]}")
        found[flow] = known[key]
    return found


def _check_operations(schedule: PeriodicSchedule, plan: Plan) -> None:
    found = sorted(zip(schedule.stage, schedule.kinds, strict=True))
    wanted = sorted((stage, kind) for stage in range(len(plan.stages)) for kind in "FB")
    if found != wanted:
        wrong = next(iter(sorted(set(wanted) ^ set(found))), None) or next(
            operation for operation in found if found.count(operation) > 1
        )
        raise InvalidSchedule(
            f"the pattern needs one F and one B of each of the {len(plan.stages)} stages; "
            f"{wrong[1]} of stage {wrong[0]} is missing, doubled or unknown"
        )


def _depths(plan: Plan, network: FlowTable) -> IntArray:
    """The position of each stage in a topological order of the stage graph."""
    after: list[list[int]] = [[] for _ in plan.stages]
    for flow in np.flatnonzero(network.backward == 0):
        after[int(network.sender[flow])].append(int(network.receiver[flow]))
    order = topological_order(after, [f"stage {s}" for s in range(len(plan.stages))])
    return np.argsort(np.array(order, np.int64))
