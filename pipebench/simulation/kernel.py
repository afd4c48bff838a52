"""The event loop: compiled, columns in, columns out.

Events are ordered by instant; at one instant tasks end first, then messages that have become ready line up in
the order of their numbers, then transfers that waited for a link or port try to start, in the order in which
they lined up. So the result is the same on every machine.
"""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

KIND_BITS = 60
INDEX_MASK = (1 << KIND_BITS) - 1
READY = 1 << KIND_BITS
TRY = 2 << KIND_BITS
LAST_SENDING_KIND = 2


class Rows(NamedTuple):
    """Tasks: columns of TaskTable, and what the loop changes.

    first (lanes + 1,). waits: inputs still missing, -1 once started; ready: when the last one so far arrived;
    start. Of lanes: at, the row at which it stands (it runs it or waits for it); free, when it is next free.
    """

    first: IntArray
    lane: IntArray
    stage: IntArray
    micro_batch: IntArray
    kind: IntArray
    duration: IntArray
    following: IntArray
    slot_row: IntArray
    waits: IntArray
    ready: IntArray
    start: IntArray
    at: IntArray
    free: IntArray


class Flows(NamedTuple):
    """Flows: columns of FlowTable. slot: network.slot_of. here, there: micro-batch of sender and receiver.

    leaving_first, leaving: the flows that leave each stage after its F, then after its B or I. of: the flow
    of each message. What the loop changes: sent and arrived of each message, -1 for never.
    """

    base: IntArray
    duration: IntArray
    link: IntArray
    queue: IntArray
    port_first: IntArray
    port: IntArray
    port_ns: IntArray
    slot: IntArray
    here: IntArray
    there: IntArray
    leaving_first: IntArray
    leaving: IntArray
    of: IntArray
    sent: IntArray
    arrived: IntArray


class Lines(NamedTuple):
    """Waiting lines. head, tail: message at the ends of each line; next: message behind each message; -1: none.

    ticket: of each message, above zero once it has lined up; holder: the message of each ticket. link_free,
    port_free: when each is next free. With fixed lines, head and next hold all messages from the start.
    """

    head: IntArray
    tail: IntArray
    next: IntArray
    ticket: IntArray
    holder: IntArray
    link_free: IntArray
    port_free: IntArray


@kernel
def _push(times: IntArray, keys: IntArray, size: int, time: int, key: int) -> int:
    """Put (time, key) on the binary heap; the new size."""
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if times[parent] < time or (times[parent] == time and keys[parent] < key):
            break
        times[child] = times[parent]
        keys[child] = keys[parent]
        child = parent
    times[child] = time
    keys[child] = key
    return size + 1


@kernel
def _pop(times: IntArray, keys: IntArray, size: int) -> int:
    """Remove the first entry of the heap; the new size."""
    size -= 1
    time, key = times[size], keys[size]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            times[other] < times[child] or (times[other] == times[child] and keys[other] < keys[child])
        ):
            child = other
        if time < times[child] or (time == times[child] and key < keys[child]):
            break
        times[parent] = times[child]
        keys[parent] = keys[child]
        parent = child
    times[parent] = time
    keys[parent] = key
    return size


@kernel
def _begin(rows: Rows, row: int, times: IntArray, keys: IntArray, size: int) -> int:
    """Start a task whose inputs are known: when its lane is free and the last of them has arrived."""
    lane = rows.lane[row]
    rows.waits[row] = -1
    rows.start[row] = max(rows.free[lane], rows.ready[row])
    rows.free[lane] = rows.start[row] + rows.duration[row]
    return _push(times, keys, size, rows.free[lane], row)


@kernel
def _arrive(rows: Rows, row: int, instant: int, times: IntArray, keys: IntArray, size: int) -> int:
    """One input of a task arrives; if it was the last one and the lane stands at the task, it starts."""
    rows.waits[row] -= 1
    rows.ready[row] = max(rows.ready[row], instant)
    if rows.waits[row] == 0 and rows.at[rows.lane[row]] == row:
        size = _begin(rows, row, times, keys, size)
    return size


@kernel
def _send(
    rows: Rows, flows: Flows, flow: int, message: int, instant: int, times: IntArray, keys: IntArray, size: int
) -> int:
    """A message starts on its way; it reaches every micro-batch of the receiver whose samples it covers."""
    until = instant + flows.duration[flow]
    flows.sent[message] = instant
    flows.arrived[message] = until
    here, there = flows.here[flow], flows.there[flow]
    sample = (message - flows.base[flow]) * here
    for target in range(sample // there, (sample + here - 1) // there + 1):
        size = _arrive(rows, rows.slot_row[flows.slot[flow] + target], until, times, keys, size)
    return size


@kernel
def _end(rows: Rows, flows: Flows, row: int, now: int, times: IntArray, keys: IntArray, size: int) -> int:
    """A task ends: its messages become ready, its lane goes on to the next task."""
    if rows.following[row] >= 0:
        size = _arrive(rows, rows.following[row], now, times, keys, size)
    if rows.kind[row] <= LAST_SENDING_KIND:
        stages = (len(flows.leaving_first) - 1) // 2
        group = rows.stage[row] + (stages if rows.kind[row] > 0 else 0)
        for position in range(flows.leaving_first[group], flows.leaving_first[group + 1]):
            flow = flows.leaving[position]
            message = flows.base[flow] + rows.micro_batch[row]
            if flows.queue[flow] < 0:
                size = _send(rows, flows, flow, message, now, times, keys, size)
            else:
                size = _push(times, keys, size, now, READY + message)
    lane = rows.lane[row]
    rows.at[lane] = row + 1
    if row + 1 < rows.first[lane + 1] and rows.waits[row + 1] == 0:
        size = _begin(rows, row + 1, times, keys, size)
    return size


@kernel
def _soonest(flows: Flows, lines: Lines, flow: int, now: int) -> int:
    """When link and ports of a flow are free, by what is known now."""
    instant = max(now, lines.link_free[flows.link[flow]])
    for position in range(flows.port_first[flow], flows.port_first[flow + 1]):
        instant = max(instant, lines.port_free[flows.port[position]])
    return int(instant)


@kernel
def run(rows: Rows, flows: Flows, lines: Lines, fixed: bool) -> int:
    """Run every task that can run; returns how many ended.

    fixed: the waiting lines give the order in which each link carries its messages; else first come, first
    served. Results: start of the rows, sent and arrived of the messages, and the row at which each lane stands.
    """
    lanes = len(rows.first) - 1
    margin = lanes + len(flows.duration) + len(lines.head) + 4
    times, keys = np.empty(4 * margin, np.int64), np.empty(4 * margin, np.int64)
    size, ended, tickets = 0, 0, 0
    for lane in range(lanes):
        row = rows.first[lane]
        rows.at[lane] = row
        if row < rows.first[lane + 1] and rows.waits[row] == 0:
            size = _begin(rows, row, times, keys, size)
    while size > 0:
        if size + margin > len(times):
            times = np.concatenate((times, np.empty_like(times)))
            keys = np.concatenate((keys, np.empty_like(keys)))
        now, key = times[0], keys[0]
        size = _pop(times, keys, size)
        if key < READY:
            ended += 1
            size = _end(rows, flows, key, now, times, keys, size)
            continue
        trying = key >= TRY
        message = lines.holder[key & INDEX_MASK] if trying else key & INDEX_MASK
        flow = flows.of[message]
        line = flows.queue[flow]
        soonest = _soonest(flows, lines, flow, now)
        if not trying:
            lines.ticket[message] = tickets + 1
            lines.holder[tickets] = message
            tickets += 1
            if not fixed and flows.port_first[flow] == flows.port_first[flow + 1]:
                # Only the link is needed: its order of service is settled, nobody can come in between.
                lines.link_free[flows.link[flow]] = soonest + flows.duration[flow]
                size = _send(rows, flows, flow, message, soonest, times, keys, size)
                continue
            if not fixed:
                if lines.head[line] < 0:
                    lines.head[line] = message
                else:
                    lines.next[lines.tail[line]] = message
                lines.tail[line] = message
            if lines.head[line] == message:
                size = _push(times, keys, size, soonest, TRY + tickets - 1)
        elif soonest > now:
            size = _push(times, keys, size, soonest, key)
        else:
            lines.head[line] = lines.next[message]
            lines.link_free[flows.link[flow]] = now + flows.duration[flow]
            for position in range(flows.port_first[flow], flows.port_first[flow + 1]):
                lines.port_free[flows.port[position]] = now + flows.port_ns[position]
            size = _send(rows, flows, flow, message, now, times, keys, size)
            if lines.head[line] >= 0 and lines.ticket[lines.head[line]] > 0:
                size = _push(times, keys, size, now, TRY + lines.ticket[lines.head[line]] - 1)
    return ended
