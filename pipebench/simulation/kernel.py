"""The event loop: compiled, records in, instants out.

Events are ordered by instant; at one instant tasks end first, then messages that have become ready line up in
the order of their numbers, then transfers that waited for a link or port try to start, in the order in which
they lined up. So the result is the same on every machine.
"""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench.simulation.records import Record, Records

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
    """Start a task whose inputs are known: when its lane is free and the last of them has arrived."""
    task = tasks[row]
    lane = lanes[task.lane]
    task.waits = -1
    task.start = max(lane.free, task.ready)
    lane.free = task.start + task.duration
    return _push(heap, size, lane.free, row)


@kernel
def _arrive(tasks: Records, lanes: Records, row: int, instant: int, heap: IntArray, size: int) -> int:
    """One input of a task arrives; if it was the last one and the lane stands at the task, it starts."""
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
    sample = (number - flow.offset) * flow.here
    for target in range(sample // flow.there, (sample + flow.here - 1) // flow.there + 1):
        size = _arrive(tasks, lanes, arrival[flow.slot + target], until, heap, size)
    return size


@kernel
def _soonest(flow: Record, ports: Records, link_free: IntArray, port_free: IntArray, now: int) -> int:
    """When link and ports of a flow are free, by what is known now."""
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

    arrival, followers: as in TaskTable. groups, leaving: the flows that leave with each group. ports: the ports of
    each flow. lines: the waiting lines; fixed: they and the messages' `next` hold all messages from the start, in
    the order in which each link carries them; else they are empty, first come first served. links, all_ports:
    their numbers. Results stand in the records: tasks' start, lanes' at, messages' sent and arrived.
    """
    link_free, port_free = np.zeros(links, np.int64), np.zeros(all_ports, np.int64)
    holder = np.empty(len(messages), np.int64)
    margin = len(lanes) + len(flows) + len(lines) + 4
    heap = np.empty((4 * margin, 2), np.int64)
    size, ended, tickets = 0, 0, 0
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
                    number = flow.offset + task.micro_batch
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
