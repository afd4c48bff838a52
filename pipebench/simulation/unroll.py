"""A periodic pattern unrolled: the order of the tasks on each lane and of the messages on each link."""

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.topology import topological_order
from pipebench.simulation.errors import InvalidSchedule
from pipebench.simulation.network import FlowTable
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import BACKWARD, FORWARD, Columns


def unrolled_columns(schedule: PeriodicSchedule, plan: Plan, stages: StageTable, network: FlowTable) -> Columns:
    """The tasks of the stages' micro-batches, on each lane by their instants in the pattern.

    Those of one instant: the shorter first (one of them takes no time), then along the stage graph.
    Raises InvalidSchedule unless the pattern has one F and one B of every stage.
    """
    _check_operations(schedule, plan)
    runs = int(stages.count[0])
    kind = np.array([FORWARD if letter == "F" else BACKWARD for letter in schedule.kinds], np.int64)
    stage = np.array(schedule.stage, np.int64)
    depth = _depths(plan, network)[stage]
    along = np.where(kind == FORWARD, depth, 2 * len(plan.stages) - depth)
    begin = _instants(schedule.start_ns, schedule.shift, schedule.period_ns, runs)
    end = begin + stages.duration[kind, stage][:, None]
    shape = begin.shape
    lane = np.broadcast_to(stages.lane[stage][:, None], shape).ravel()
    micro_batch = np.broadcast_to(np.arange(runs), shape).ravel()
    order = np.lexsort(
        (micro_batch, np.broadcast_to(along[:, None], shape).ravel(), end.ravel(), begin.ravel(), lane)
    )
    sizes = np.bincount(lane, minlength=len(stages.lanes))
    return Columns(
        devices=stages.lanes,
        first=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        stage=np.broadcast_to(stage[:, None], shape).ravel()[order],
        micro_batch=micro_batch[order],
        kind=np.broadcast_to(kind[:, None], shape).ravel()[order],
    )


def link_orders(schedule: PeriodicSchedule, network: FlowTable, runs: int) -> list[IntArray]:
    """For each link its messages by their instants in the pattern; tensors of one transfer in their own order.

    Raises InvalidSchedule for a flow that occupies a link and that the pattern does not transfer.
    """
    transfer = transfers_of_flows(schedule, network)
    begin = _instants(schedule.transfer_start_ns, schedule.transfer_shift, schedule.period_ns, runs)
    orders: list[IntArray] = []
    for link in range(network.links):
        flows = np.flatnonzero(network.link == link)
        instants = begin[transfer[flows]]
        message = network.base[flows][:, None] + np.arange(runs)
        rank = np.broadcast_to(flows[:, None], instants.shape)
        orders.append(message.ravel()[np.lexsort((rank.ravel(), instants.ravel()))])
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


def _instants(start: tuple[int, ...], shift: tuple[int, ...], period_ns: int, runs: int) -> IntArray:
    """Instants of the pattern, shape (entries, runs): start + (shift + i) * period."""
    begin = np.array(start, np.int64) + np.array(shift, np.int64) * period_ns
    instants: IntArray = begin[:, None] + np.arange(runs) * period_ns
    return instants


def _depths(plan: Plan, network: FlowTable) -> IntArray:
    """The position of each stage in a topological order of the stage graph."""
    after: list[list[int]] = [[] for _ in plan.stages]
    for flow in np.flatnonzero(network.backward == 0):
        after[int(network.sender[flow])].append(int(network.receiver[flow]))
    order = topological_order(after, [f"stage {s}" for s in range(len(plan.stages))])
    return np.argsort(np.array(order, np.int64))
