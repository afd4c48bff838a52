"""From tables to the kernel's records and back: the instants of one run."""

from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.jit import COMPILES
from pipebench.costs.quantise import IntArray
from pipebench.simulation.kernel import run
from pipebench.simulation.network import FlowTable, add_message_waits, slot_of
from pipebench.simulation.records import FLOW, GROUP, LANE, LINE, MESSAGE, PORT, TASK, Records
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import FORWARD, INPUT, TaskTable


@dataclass(frozen=True, slots=True)
class Instants:
    """When each task started (-1: never), and each message started on its way and arrived (-1: never), in ns.

    ended: tasks that ended. at: the row at which each lane stands.
    """

    start: IntArray
    sent: IntArray
    arrived: IntArray
    ended: int
    at: IntArray


def run_loop(
    stages: StageTable, tasks: TaskTable, network: FlowTable, link_order: list[IntArray] | None = None
) -> Instants:
    """Run the tasks in the order of their lanes, from instant 0.

    link_order: for each link all its messages in the order in which it must carry them (queues of the network
    are then its links); None: first come, first served.
    """
    task_records = _task_records(stages, tasks, network)
    lane_records = np.zeros(len(tasks.columns.devices), LANE)
    lane_records["at"] = tasks.columns.first[:-1]
    lane_records["end"] = tasks.columns.first[1:]
    groups, leaving = _groups(stages, network)
    messages, lines = _messages(stages, network, link_order)
    ports = np.zeros(len(network.port), PORT)
    ports["port"] = network.port
    ports["occupied"] = network.port_ns
    ended = run(
        _readable(task_records),
        _readable(lane_records),
        tasks.arrival,
        tasks.followers,
        _readable(groups),
        leaving,
        _readable(_flow_records(stages, network)),
        _readable(ports),
        _readable(messages),
        _readable(lines),
        network.links,
        network.ports,
        link_order is not None,
    )
    start = task_records["start"].copy()
    start[tasks.columns.together + 1] = start[tasks.columns.together]
    return Instants(
        start=start,
        sent=messages["sent"].copy(),
        arrived=messages["arrived"].copy(),
        ended=int(ended),
        at=lane_records["at"].copy(),
    )


def _readable(records: Records) -> Records:
    """Records whose fields are attributes, as they are in compiled code anyway."""
    return records if COMPILES else records.view(np.recarray)


def _task_records(stages: StageTable, tasks: TaskTable, network: FlowTable) -> Records:
    columns = tasks.columns
    group = columns.stage + np.where(columns.kind == FORWARD, 0, len(stages.count))
    waits = tasks.waits.copy()
    add_message_waits(waits, tasks.arrival, network, stages)
    records = np.zeros(len(tasks.lane), TASK)
    records["lane"] = tasks.lane
    records["sends"] = np.where(columns.kind <= INPUT, group, -1)
    records["micro_batch"] = columns.micro_batch
    records["duration"] = tasks.duration
    # A pair is its first row; the second one follows at once, when the first has ended.
    records["duration"][columns.together + 1] = 0
    records["following"] = tasks.next
    records["waits"] = waits
    records["start"] = -1
    return records


def _groups(stages: StageTable, network: FlowTable) -> tuple[Records, IntArray]:
    group = network.sender + network.backward * len(stages.count)
    bounds = np.searchsorted(np.sort(group), np.arange(2 * len(stages.count) + 1))
    records = np.zeros(2 * len(stages.count), GROUP)
    records["first"] = bounds[:-1]
    records["end"] = bounds[1:]
    return records, np.argsort(group, kind="stable").astype(np.int64)


def _flow_records(stages: StageTable, network: FlowTable) -> Records:
    records = np.zeros(len(network.sender), FLOW)
    records["offset"] = network.base
    for field in ("duration", "link", "queue"):
        records[field] = getattr(network, field)
    records["port_first"] = network.port_first[:-1]
    records["port_end"] = network.port_first[1:]
    records["slot"] = [slot_of(flow, network, stages) for flow in range(len(records))]
    records["here"] = stages.micro_batch[network.sender]
    records["there"] = stages.micro_batch[network.receiver]
    return records


def _messages(
    stages: StageTable, network: FlowTable, link_order: list[IntArray] | None
) -> tuple[Records, Records]:
    """The messages, and the waiting lines: empty, or full from the start."""
    messages = np.zeros(network.messages, MESSAGE)
    messages["flow"] = np.repeat(np.arange(len(network.sender)), stages.count[network.sender])
    for field in ("sent", "arrived", "next"):
        messages[field] = -1
    lines = np.full(network.queues, -1, LINE)
    for link, order in enumerate(link_order or ()):
        if len(order):
            lines["head"][link] = order[0]
            messages["next"][order[:-1]] = order[1:]
    return messages, lines
