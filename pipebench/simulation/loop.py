"""From tables to the kernel's columns and back: the instants of one run."""

from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.simulation.kernel import Flows, Lines, Rows, run
from pipebench.simulation.network import FlowTable, add_message_waits, slot_of
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import TaskTable


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
    flows = len(network.sender)
    counts = stages.count[network.sender]
    waits = tasks.waits.copy()
    add_message_waits(waits, tasks.slot_row, network, stages)
    group = network.sender + network.backward * len(stages.count)
    rows = Rows(
        first=tasks.columns.first,
        lane=tasks.lane,
        stage=tasks.columns.stage,
        micro_batch=tasks.columns.micro_batch,
        kind=tasks.columns.kind,
        duration=tasks.duration,
        following=tasks.next,
        slot_row=tasks.slot_row,
        waits=waits,
        ready=np.zeros(len(waits), np.int64),
        start=np.full(len(waits), -1, np.int64),
        at=np.zeros(len(tasks.columns.devices), np.int64),
        free=np.zeros(len(tasks.columns.devices), np.int64),
    )
    columns = Flows(
        base=network.base,
        duration=network.duration,
        link=network.link,
        queue=network.queue,
        port_first=network.port_first,
        port=network.port,
        port_ns=network.port_ns,
        slot=np.array([slot_of(flow, network, stages) for flow in range(flows)], np.int64),
        here=stages.micro_batch[network.sender],
        there=stages.micro_batch[network.receiver],
        leaving_first=np.searchsorted(np.sort(group), np.arange(2 * len(stages.count) + 1)).astype(np.int64),
        leaving=np.argsort(group, kind="stable").astype(np.int64),
        of=np.repeat(np.arange(flows), counts),
        sent=np.full(network.messages, -1, np.int64),
        arrived=np.full(network.messages, -1, np.int64),
    )
    ended = int(run(rows, columns, _lines(network, link_order), link_order is not None))
    return Instants(rows.start, columns.sent, columns.arrived, ended, rows.at)


def _lines(network: FlowTable, link_order: list[IntArray] | None) -> Lines:
    head = np.full(network.queues, -1, np.int64)
    following = np.full(network.messages, -1, np.int64)
    for link, order in enumerate(link_order or ()):
        if len(order):
            head[link] = order[0]
            following[order[:-1]] = order[1:]
    return Lines(
        head=head,
        tail=np.full(network.queues, -1, np.int64),
        next=following,
        ticket=np.zeros(network.messages, np.int64),
        holder=np.zeros(network.messages, np.int64),
        link_free=np.zeros(network.links, np.int64),
        port_free=np.zeros(network.ports, np.int64),
    )
