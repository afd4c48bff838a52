"""The event loop: records of tasks, lanes and messages, the compiled kernel, and the instants it gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipebench.algorithms.jit import COMPILES, kernel
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import F, I
from pipebench.simulation.network import FlowTable, add_message_waits, slot_of
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import TaskTable

Records = np.ndarray[tuple[int], np.dtype[Any]]
"""An array of records; fields are read as array[i].field inside kernels and array["field"] outside."""

Record = Any
"""One of them, which numba knows and mypy does not."""


def _record(*fields: str) -> np.dtype[Any]:
    return np.dtype([(field, np.int64) for field in fields])


TASK = _record("lane", "sends", "micro_batch", "duration", "following", "waits", "ready", "start")
"""sends: the group of flows that leave when it ends, -1 none. following: the row that waits for it whatever
the messages, -1 none, below that -2 - g for those in row g of TaskTable.followers. waits: inputs that are missing,
-1 once it has started. ready: when the last one so far arrived."""

LANE = _record("at", "end", "free")
"""at: the row that it runs or waits for. end: one past its last row. free: when it is next free."""

GROUP = _record("first", "end")
"""Flows that leave a stage after its F, or after its B or I: a slice of their list."""

FLOW = _record(
    "offset", "turn", "turns", "duration", "link", "queue", "port_first", "port_end", "slot", "here", "there"
)
"""Columns of FlowTable; offset is its base, a name that numpy keeps for itself. slot: network.slot_of. here,
there: micro-batch of sender and receiver."""

PORT = _record("port", "occupied")
"""A port that a flow occupies and for how long."""

MESSAGE = _record("flow", "sent", "arrived", "ticket", "next")
"""sent, arrived: instants, -1 never. ticket: above zero once it has lined up. next: the one behind it, or -1."""

LINE = _record("head", "tail")
"""The messages at the ends of a waiting line, -1 when it is empty."""


KIND_BITS = 60
INDEX_MASK = (1 << KIND_BITS) - 1
READY = 1 << KIND_BITS
TRY = 2 << KIND_BITS


@kernel
def _push(heap: IntArray, size: int, time: int, key: int) -> int:
    """Put (time, key) on the binary heap, shape (room, 2); the new size."""
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if heap[parent, 0] < time or (heap[parent, 0] == time and heap[parent, 1] < key):
            break
        heap[child, 0] = heap[parent, 0]
        heap[child, 1] = heap[parent, 1]
        child = parent
    heap[child, 0] = time
    heap[child, 1] = key
    return size + 1


@kernel
def _pop(heap: IntArray, size: int) -> int:
    """Remove the first entry of the heap; the new size."""
    size -= 1
    time, key = heap[size, 0], heap[size, 1]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            heap[other, 0] < heap[child, 0]
            or (heap[other, 0] == heap[child, 0] and heap[other, 1] < heap[child, 1])
        ):
            child = other
        if time < heap[child, 0] or (time == heap[child, 0] and key < heap[child, 1]):
            break
        heap[parent, 0] = heap[child, 0]
        heap[parent, 1] = heap[child, 1]
        parent = child
    heap[parent, 0] = time
    heap[parent, 1] = key
    return size


@kernel
def _begin(tasks: Records, lanes: Records, row: int, heap: IntArray, size: int) -> int:
    """Start a task whose inputs are known, when its lane is free and the last input has arrived."""
    task = tasks[row]
    lane = lanes[task.lane]
    task.waits = -1
    task.start = max(lane.free, task.ready)
    lane.free = task.start + task.duration
    return _push(heap, size, lane.free, row)


@kernel
def _arrive(tasks: Records, lanes: Records, row: int, instant: int, heap: IntArray, size: int) -> int:
    """One input of a task arrives. If it is the last and the lane stands at the task, the task starts."""
    task = tasks[row]
    task.waits -= 1
    task.ready = max(task.ready, instant)
    if task.waits == 0 and lanes[task.lane].at == row:
        size = _begin(tasks, lanes, row, heap, size)
    return size


@kernel
def _send(
    tasks: Records,
    lanes: Records,
    arrival: IntArray,
    messages: Records,
    number: int,
    flow: Record,
    instant: int,
    heap: IntArray,
    size: int,
) -> int:
    """A message starts on its way; it reaches every micro-batch of the receiver whose samples it covers."""
    until = instant + flow.duration
    messages[number].sent = instant
    messages[number].arrived = until
    sample = ((number - flow.offset) * flow.turns + flow.turn) * flow.here
    for target in range(sample // flow.there, (sample + flow.here - 1) // flow.there + 1):
        size = _arrive(tasks, lanes, arrival[flow.slot + target], until, heap, size)
    return size


@kernel
def _soonest(flow: Record, ports: Records, link_free: IntArray, port_free: IntArray, now: int) -> int:
    """The earliest instant at which link and ports of a flow are free, as known so far."""
    instant = max(now, int(link_free[flow.link]))
    for position in range(flow.port_first, flow.port_end):
        instant = max(instant, int(port_free[ports[position].port]))
    return instant


@kernel
def run(
    tasks: Records,
    lanes: Records,
    arrival: IntArray,
    followers: IntArray,
    groups: Records,
    leaving: IntArray,
    flows: Records,
    ports: Records,
    messages: Records,
    lines: Records,
    links: int,
    all_ports: int,
    fixed: bool,
) -> int:
    """Run every task that can run; returns how many ended.

    arrival, followers: as in TaskTable.
    groups, leaving: the flows that leave with each group.
    ports: the ports of each flow.
    lines: the waiting lines.
    fixed: whether lines and the messages' `next` hold all messages from the start, in the order in which each link
    carries them. Otherwise they start empty, and the first message that comes is served first.
    links, all_ports: the number of links and of ports.

    Results are written into the records: start of tasks, at of lanes, sent and arrived of messages.
    """
    link_free, port_free = np.zeros(links, np.int64), np.zeros(all_ports, np.int64)
    holder = np.empty(len(messages), np.int64)
    margin = len(lanes) + len(flows) + len(lines) + 4
    heap = np.empty((4 * margin, 2), np.int64)
    # A plain 0 is of a type of its own, for which numba compiles what takes the size a second time.
    size, ended, tickets = int(np.int64(0)), 0, 0
    for lane in lanes:
        if lane.at < lane.end and tasks[lane.at].waits == 0:
            size = _begin(tasks, lanes, lane.at, heap, size)
    while size > 0:
        if size + margin > len(heap):
            heap = np.concatenate((heap, np.empty_like(heap)))
        now, key = heap[0, 0], heap[0, 1]
        size = _pop(heap, size)
        if key < READY:
            ended += 1
            task = tasks[key]
            if task.following >= 0:
                size = _arrive(tasks, lanes, task.following, now, heap, size)
            elif task.following < -1:
                for position in range(followers.shape[1]):
                    row = followers[-2 - task.following, position]
                    if row >= 0:
                        size = _arrive(tasks, lanes, row, now, heap, size)
            if task.sends >= 0:
                for position in range(groups[task.sends].first, groups[task.sends].end):
                    flow = flows[leaving[position]]
                    if task.micro_batch % flow.turns != flow.turn:
                        continue
                    number = flow.offset + task.micro_batch // flow.turns
                    if flow.queue < 0:
                        size = _send(tasks, lanes, arrival, messages, number, flow, now, heap, size)
                    else:
                        size = _push(heap, size, now, READY + number)
            lane = lanes[task.lane]
            lane.at = key + 1
            if lane.at < lane.end and tasks[lane.at].waits == 0:
                size = _begin(tasks, lanes, lane.at, heap, size)
            continue
        trying = key >= TRY
        number = holder[key & INDEX_MASK] if trying else key & INDEX_MASK
        message = messages[number]
        flow = flows[message.flow]
        line = lines[flow.queue]
        soonest = _soonest(flow, ports, link_free, port_free, now)
        if not trying:
            holder[tickets] = number
            tickets += 1
            message.ticket = tickets
            if not fixed and flow.port_first == flow.port_end:
                # Only the link is needed: its order of service is settled, nobody can come in between.
                link_free[flow.link] = soonest + flow.duration
                size = _send(tasks, lanes, arrival, messages, number, flow, soonest, heap, size)
                continue
            if not fixed:
                if line.head < 0:
                    line.head = number
                else:
                    messages[line.tail].next = number
                line.tail = number
            if line.head == number:
                size = _push(heap, size, soonest, TRY + tickets - 1)
        elif soonest > now:
            size = _push(heap, size, soonest, key)
        else:
            line.head = message.next
            link_free[flow.link] = now + flow.duration
            for position in range(flow.port_first, flow.port_end):
                port_free[ports[position].port] = now + ports[position].occupied
            size = _send(tasks, lanes, arrival, messages, number, flow, now, heap, size)
            if line.head >= 0 and messages[line.head].ticket > 0:
                size = _push(heap, size, now, TRY + messages[line.head].ticket - 1)
    return ended


@dataclass(frozen=True, slots=True)
class Instants:
    """Instants of a run in ns; -1 for what never happened.

    start: when each task started.
    sent, arrived: when each message started on its way, and when it arrived.
    ended: number of tasks that ended.
    at: the row at which each lane stands.
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

    link_order: for each link all its messages in the order in which it must carry them; the queues of the network
    are then its links. None: first come, first served.
    """
    task_records = _task_records(stages, tasks, network)
    lane_records = np.zeros(len(tasks.columns.devices), LANE)
    lane_records["at"] = tasks.columns.first[:-1]
    lane_records["end"] = tasks.columns.first[1:]
    groups, leaving = _groups(stages, network)
    messages, lines = _messages(network, link_order)
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
    """Records with fields as attributes, as compiled code sees them."""
    return records if COMPILES else records.view(np.recarray)


def _task_records(stages: StageTable, tasks: TaskTable, network: FlowTable) -> Records:
    columns = tasks.columns
    group = columns.stage + np.where(columns.kind == F, 0, len(stages.count))
    waits = tasks.waits.copy()
    add_message_waits(waits, tasks.arrival, network, stages)
    records = np.zeros(len(tasks.lane), TASK)
    records["lane"] = tasks.lane
    records["sends"] = np.where(columns.kind <= I, group, -1)
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
    for field in ("turn", "turns", "duration", "link", "queue"):
        records[field] = getattr(network, field)
    records["port_first"] = network.port_first[:-1]
    records["port_end"] = network.port_first[1:]
    records["slot"] = [slot_of(flow, network, stages) for flow in range(len(records))]
    records["here"] = stages.micro_batch[network.sender]
    records["there"] = stages.micro_batch[network.receiver]
    return records


def _messages(network: FlowTable, link_order: list[IntArray] | None) -> tuple[Records, Records]:
    """The records of the messages, and the waiting lines: empty, or filled from the start."""
    messages = np.zeros(network.messages, MESSAGE)
    messages["flow"] = np.repeat(np.arange(len(network.sender)), network.count)
    for field in ("sent", "arrived", "next"):
        messages[field] = -1
    lines = np.full(network.queues, -1, LINE)
    for link, order in enumerate(link_order or ()):
        if len(order):
            lines["head"][link] = order[0]
            messages["next"][order[:-1]] = order[1:]
    return messages, lines
