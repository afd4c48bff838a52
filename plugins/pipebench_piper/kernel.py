"""Can the graph be cut into stages of at most a target time? The fewest samples in flight from each downset on.

Source: Piper section 4 (dynamic program over downsets, devices and the sum of data-parallel degrees). Less in
flight behind a stage never hurts it, so the sum need not be part of the state when the time is a target.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.downset_table import Words, boundary, contains, cut_by_both
from pipebench.algorithms.jit import assign, kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_piper.knapsack import choose, greedy, lagrange_bounds

UNREACHED = 1 << 30
SLACK = 1e-9
"""Relative slack of bounds that are sums of rounded numbers."""


class DownsetTables(NamedTuple):
    """What the kernel reads. A way is a tensor-parallel and a data-parallel degree. Sets are downsets by `work`.

    rows: the sets.
    work: least device-seconds of each set.
    cut: edges that each set holds in part.
    devices, turns: of each way: its devices; what it adds to the sum in flight, which divided by the same and
        rounded up is what one replica keeps.
    degree: position of each way's tensor-parallel degree.
    price: seconds for a byte that crosses, of each way.
    time, saved, fixed: (ways, operators, alternatives) seconds, bytes for each unit in flight, other bytes.
    every_once, every_live: (ways,) bytes of every stage besides, once and for each unit in flight.
    offered: (ways, operators) number of alternatives.
    fast, fast_saved, fast_fixed: (ways, sets) sums over the fastest alternatives.
    least_saved, least_fixed: (ways, sets) sums over the least of each.
    lacking: (ways, sets) operators without any alternative.
    into, out: (degrees, sets) bytes of cut edges at their inner and outer end, least over the alternatives.
    both: (degrees, edges) the two together.
    edges: (edges, 2) producer, consumer.
    into_each, out_each: (ways, edges, alternatives) bytes at the consumer's and at the producer's end.
    uniform: by degree, whether those do not depend on the alternative.
    ends, sent, sent_cut, sent_sums: of algorithms.downset_table.boundary, bytes a sample of tensors that cross.
    buffered: (ways,) samples of each that a device of the stage has buffers for.
    """

    rows: Words
    work: FloatArray
    cut: Words
    devices: IntArray
    turns: IntArray
    degree: IntArray
    price: FloatArray
    time: FloatArray
    saved: FloatArray
    fixed: FloatArray
    every_once: FloatArray
    every_live: FloatArray
    offered: IntArray
    fast: FloatArray
    fast_saved: FloatArray
    fast_fixed: FloatArray
    least_saved: FloatArray
    least_fixed: FloatArray
    lacking: FloatArray
    into: FloatArray
    out: FloatArray
    both: FloatArray
    edges: IntArray
    into_each: FloatArray
    out_each: FloatArray
    uniform: NDArray[np.bool_]
    ends: Words
    sent: FloatArray
    sent_cut: Words
    sent_sums: FloatArray
    buffered: FloatArray


class StageTimeCache(NamedTuple):
    """Stage times that are known. Their place is the key modulo their odd number; a new one replaces that there.

    key: -1 where nothing is known. least: a bound, which is `known` where that is the best. known: seconds.
    """

    key: IntArray
    least: FloatArray
    known: FloatArray


@kernel
def inside(rows: Words, row: int, node: int) -> bool:
    """Whether a downset holds a node."""
    return bool((rows[row, node // 64] >> np.uint64(node % 64) & np.uint64(1)) != 0)


@kernel
def crossing_bytes(tables: DownsetTables, large: int, small: int) -> float:
    """Bytes a sample of what crosses into or out of a stage."""
    sums = tables.sent_sums
    return float(boundary(tables.rows, tables.sent_cut, tables.ends, tables.sent, sums, large, small))


@kernel
def room_for(tables: DownsetTables, way: int, live: int, crossing: float, limit: float) -> float:
    """Bytes that the operators of a stage may take with `live` units in flight."""
    besides = tables.every_once[way] + live * tables.every_live[way] + crossing * tables.buffered[way]
    return float(limit - besides)


@kernel
def stage_choice(
    tables: DownsetTables, large: int, small: int, way: int
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, IntArray]:
    """The operators between two downsets with their alternatives: (operators, time, saved, fixed, count)."""
    nodes = tables.time.shape[1]
    place = np.full(nodes, -1, np.int64)
    members = np.empty(nodes, np.int64)
    size = 0
    for node in range(nodes):
        if inside(tables.rows, large, node) and not inside(tables.rows, small, node):
            place[node] = size
            members[size] = node
            size += 1
    widest = tables.time.shape[2]
    time, saved, fixed = np.empty((size, widest)), np.empty((size, widest)), np.empty((size, widest))
    count = np.empty(size, np.int64)
    for i in range(size):
        count[i] = tables.offered[way, members[i]]
        for a in range(widest):
            time[i, a] = tables.time[way, members[i], a]
            saved[i, a] = tables.saved[way, members[i], a]
            fixed[i, a] = tables.fixed[way, members[i], a]
    for edge in range(tables.edges.shape[0]):
        source, target = place[tables.edges[edge, 0]], place[tables.edges[edge, 1]]
        if source >= 0 and target < 0:
            for a in range(count[source]):
                time[source, a] += tables.out_each[way, edge, a] * tables.price[way]
        elif target >= 0 and source < 0:
            for a in range(count[target]):
                time[target, a] += tables.into_each[way, edge, a] * tables.price[way]
    return members[:size], time, saved, fixed, count


@kernel
def stage_time(
    tables: DownsetTables,
    memory: StageTimeCache,
    large: int,
    small: int,
    way: int,
    live: int,
    room: float,
    to_the_end: bool,
    target: float,
    counters: IntArray,
) -> float:
    """Seconds of a stage with `live` units in flight on a device; a bound above `target` where that is one.

    room: bytes that its operators may take. Inf where they do not fit.
    """
    sets, ways = tables.work.shape[0], tables.devices.shape[0]
    # Units in flight never exceed the number of devices, which is far below 2^14 (cost_tables.MOST_DEVICES).
    name = ((large * sets + small) * ways + way) * 16384 + live
    slot = name % memory.key.shape[0]
    if memory.key[slot] == name:
        if memory.known[slot] <= target or memory.known[slot] == memory.least[slot]:
            return float(memory.known[slot])
        if memory.least[slot] > target:
            return float(memory.least[slot])
    _, time, saved, fixed, count = stage_choice(tables, large, small, way)
    for i in range(time.shape[0]):
        for a in range(count[i]):
            saved[i, a] = saved[i, a] * live + fixed[i, a]
    counters[2] += 1
    known, price, _ = greedy(time, saved, count, room)
    least = known
    if to_the_end and known < np.inf and price > 0.0:
        least = min(known, lagrange_bounds(time, saved, count, price)[0] - price * room)
        if least >= known * (1 - 1e-12):
            least = known
        elif least <= target < known:
            counters[3] += 1
            known, proven, _ = choose(time, saved, count, room, to_the_end)
            counters[4] += not proven
            least = known
    memory.key[slot], memory.least[slot], memory.known[slot] = name, least, known
    if known <= target:
        return known
    return least


@kernel
def reach(
    tables: DownsetTables,
    memory: StageTimeCache,
    target: float,
    limit: float,
    most_in_flight: int,
    to_the_end: bool,
    most_stages: int,
    flight: IntArray,
    link: IntArray,
    counters: IntArray,
) -> bool:
    """Fill flight (sets, devices + 1): least sum in flight of a downset on at most so many devices.

    link: (sets, devices + 1, 3) the downset behind the first stage, its devices, the way of the stage.
    most_stages: 1 where the whole graph has to be one stage, else 0. counters: pairs, transitions, knapsacks,
    exact searches, of those not proven. Returns whether the whole graph is reached.
    """
    sets, room = flight.shape
    devices = room - 1
    ways = tables.devices.shape[0]
    work = tables.work
    whole = work[sets - 1]
    slack = target * (1 + SLACK)
    flight[:] = UNREACHED
    flight[0, :] = 0
    used_most = 0
    for way in range(ways):
        used_most = max(used_most, tables.devices[way])
    used_least = used_most
    for way in range(ways):
        used_least = min(used_least, tables.devices[way])
    useful = np.empty(room, np.int64)
    for small in range(sets - 1):
        if most_stages == 1 and small > 0:
            break
        kinds = 0
        for k in range(room):
            if small > 0 and k > 0 and flight[small, k - 1] < flight[small, k]:
                flight[small, k] = flight[small, k - 1]
                assign(link[small, k], link[small, k - 1])
            if flight[small, k] < UNREACHED and (kinds == 0 or flight[small, k] < flight[small, k - 1]):
                useful[kinds] = k
                kinds += 1
        if kinds == 0:
            continue
        first = useful[0]
        lowest = whole - slack * (devices - first - used_least) - whole * SLACK
        start = np.searchsorted(work, lowest)
        highest = work[small] + slack * min(used_most, devices - first) + whole * SLACK
        for large in range(max(small + 1, start), sets):
            if work[large] > highest:
                break
            if most_stages == 1 and large < sets - 1:
                continue
            rest = (whole - work[large]) * (1 - SLACK)
            # On more devices than these the rest of the graph has too few left.
            last = devices
            while last >= 0 and rest > slack * (devices - last):
                last -= 1
            if not contains(tables.rows, large, small):
                continue
            counters[0] += 1
            inner = -1
            crossing = 0.0
            exchanged = -1.0
            for way in range(ways):
                degree = tables.degree[way]
                used = tables.devices[way]
                if first + used > last or tables.lacking[way, large] > tables.lacking[way, small]:
                    continue
                if (work[large] - work[small]) * (1 - SLACK) > slack * used:
                    continue
                if degree != inner:
                    inner = degree
                    crossing = tables.into[degree, large] + tables.out[degree, small]
                    crossing -= cut_by_both(tables.cut, tables.both[degree], large, small)
                fastest = tables.fast[way, large] - tables.fast[way, small] + crossing * tables.price[way]
                if fastest * (1 - SLACK) > target:
                    continue
                for kind in range(kinds):
                    k = useful[kind]
                    if k + used > last:
                        break
                    total = flight[small, k] + tables.turns[way]
                    if total > most_in_flight or total >= flight[large, k + used]:
                        continue
                    counters[1] += 1
                    live = (total + tables.turns[way] - 1) // tables.turns[way]
                    if exchanged < 0:
                        exchanged = crossing_bytes(tables, large, small)
                    free = room_for(tables, way, live, exchanged, limit)
                    least = (tables.least_saved[way, large] - tables.least_saved[way, small]) * live
                    least += tables.least_fixed[way, large] - tables.least_fixed[way, small]
                    if least * (1 - SLACK) > free:
                        continue
                    held = (tables.fast_saved[way, large] - tables.fast_saved[way, small]) * live
                    held += tables.fast_fixed[way, large] - tables.fast_fixed[way, small]
                    sure = fastest * (1 + SLACK) <= target and held * (1 + SLACK) <= free
                    if not (sure and tables.uniform[degree]):
                        seconds = stage_time(
                            tables, memory, large, small, way, live, free, to_the_end, target, counters
                        )
                        if seconds > target:
                            continue
                    flight[large, k + used] = total
                    link[large, k + used, 0] = small
                    link[large, k + used, 1] = k
                    link[large, k + used, 2] = way
    for k in range(1, room):
        if flight[sets - 1, k - 1] < flight[sets - 1, k]:
            flight[sets - 1, k] = flight[sets - 1, k - 1]
            assign(link[sets - 1, k], link[sets - 1, k - 1])
    return bool(flight[sets - 1, devices] < UNREACHED)
