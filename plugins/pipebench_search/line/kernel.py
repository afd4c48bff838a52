"""What rows of stages take by the clock, and their random neighbours, in compiled code."""

import math
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.orders.greedy_kernel import run
from pipebench.algorithms.orders.modulo import Work, shortest
from pipebench.algorithms.orders.tables import ANY, CONTENDED, LINK, NS, RECEIVER, SENDER, Waits
from pipebench.costs.quantise import IntArray
from pipebench_search.line.tables import (
    BACKWARD,
    BUFFER,
    CAP,
    DELAY,
    END,
    FORWARD,
    GRADIENT,
    HALF,
    INPUT,
    LANE,
    PARAMETERS,
    SAVED,
    STATE,
    WAY,
    WEIGHT,
    Costs,
)

MODULUS, FACTOR = 2**31 - 1, 48271
"""Random numbers of Park and Miller, Communications of the ACM 31 (1988), with the factor of 1993."""
CUT, HOME, SPLIT, JOIN, MANNER, SWAP, FLIGHT, CARVE = range(8)
"""A cut moves; a stage moves to another lane; is split; is joined with the next; runs in another way; changes
lanes with another; keeps more or fewer in flight; part of it moves to another lane."""
Shares = tuple[float, float, float, float, float, float, float, float]
"""The share of moves of each kind and all kinds before it."""


class Most(NamedTuple):
    """How many lanes, ways and stages there are, and micro-batches in flight of each stage, at most."""

    lanes: int
    ways: int
    stages: int
    in_flight: int


@kernel
def look(costs: Costs, stages: IntArray, split: bool, most_ns: int) -> int:
    """The ns of a mini-batch in greedy order, as `greedy[links=true]` has it, in async in the pattern of `modulo`.

    ANY: above the limit, or too large.
    stages: rows of (END, LANE, WAY, CAP), at least one. split: weight gradients are tasks of their own.
    """
    lanes, count, micro_batches, limit = len(costs.shape_of), len(stages), costs.micro_batches, costs.limit
    duration, memory, lane_of, caps, reduce, held = _stages(costs, stages, split and not costs.steady)
    waits = _waits(costs, stages, memory)
    if costs.steady:
        most = most_ns if most_ns >= ANY - 1 else most_ns // micro_batches
        starts, sent = np.zeros((2, count), np.int64), np.zeros(len(waits.rows), np.int64)
        order, any_number = np.arange(count), np.full(count, ANY)
        work = Work(order, duration, lane_of, memory, any_number, held, limit, waits)
        period = shortest(starts, sent, most, work)
        return ANY if period == ANY else period * micro_batches
    if _is_hopeless(micro_batches, limit, duration, memory, lane_of, reduce, held, most_ns):
        return ANY
    free, tasks = np.zeros(lanes, np.int64), np.zeros((0, 3), np.int64)
    ran = run(tasks, free, held, limit, limit, most_ns, micro_batches, caps, duration, lane_of, memory, waits)
    if ran < len(duration) * count * micro_batches:
        return ANY
    ns = 0
    for lane in range(lanes):
        ns = max(ns, free[lane] + reduce[lane])
    return ns if ns <= most_ns else ANY


@kernel
def _is_hopeless(
    micro_batches: int,
    limit: IntArray,
    duration: IntArray,
    memory: IntArray,
    lane_of: IntArray,
    reduce: IntArray,
    held: IntArray,
    most_ns: int,
) -> bool:
    """Whether a lane has too much to do, or no room for one micro-batch of one of its stages."""
    load = reduce.copy()
    for at in range(len(lane_of)):
        lane = lane_of[at]
        if held[lane] + memory[0, at] + memory[1, at] + memory[2, at] > limit[lane]:
            return True
        for kind in range(len(duration)):
            load[lane] += micro_batches * duration[kind, at]
        if load[lane] > most_ns:
            return True
    return False


@kernel
def _stages(
    costs: Costs, stages: IntArray, split: bool
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Durations, memory (without messages), lanes and numbers in flight; updates and bytes held, by lane."""
    lanes, count, sums = len(costs.shape_of), len(stages), costs.sums
    duration, memory = np.zeros((3 if split else 2, count), np.int64), np.zeros((3, count), np.int64)
    lane_of, caps = np.empty(count, np.int64), np.empty(count, np.int64)
    reduce, held = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    last = stages[:, LANE].max()
    first = 0
    for at in range(count):
        end, lane, way = stages[at, END], stages[at, LANE], stages[at, WAY]
        size = costs.shape_of[lane]
        lane_of[at], caps[at] = lane, stages[at, CAP]
        backward = sums[BACKWARD, size, way, end] - sums[BACKWARD, size, way, first]
        weight = min(sums[WEIGHT, size, way, end] - sums[WEIGHT, size, way, first], backward)
        duration[0, at] = backward - weight if split else backward
        duration[1, at] = sums[FORWARD, size, way, end] - sums[FORWARD, size, way, first]
        if split:
            duration[2, at] = weight
        held[lane] += sums[STATE, size, way, end] - sums[STATE, size, way, first]
        saved = sums[SAVED, size, way, end] - sums[SAVED, size, way, first]
        level = 0
        while 2 << level <= end - first:
            level += 1
        other = end - (1 << level)
        workspace, transient = max(costs.workspace[level, first], costs.workspace[level, other]), 0
        if len(costs.transient):
            transient = max(costs.transient[level, size, way, first], costs.transient[level, size, way, other])
        memory[0, at] = 0 if costs.recomputes[way] else saved
        memory[1, at] = transient + (saved if costs.recomputes[way] else 0)
        memory[2, at] = workspace
        parameters = sums[PARAMETERS, size, way, end] - sums[PARAMETERS, size, way, first]
        if parameters:
            update = round(costs.update[last, lane, 0] + costs.update[last, lane, 1] * parameters)
            if costs.steady:
                duration[0, at] += -(-update // costs.micro_batches)
            else:
                reduce[lane] += update
        first = end
    return duration, memory, lane_of, caps, reduce, held


@kernel
def _waits(costs: Costs, stages: IntArray, memory: IntArray) -> Waits:
    """The messages; buffers, and inputs that are kept, are added to the memory."""
    count = len(stages)
    home = np.empty(stages[count - 1, END], np.int64)
    first = 0
    for at in range(count):
        home[first : stages[at, END]] = at
        first = stages[at, END]
    told = np.full(count, -1, np.int64)
    for tensor in range(costs.first_made[0]):
        for place in range(costs.first_reader[tensor], costs.first_reader[tensor + 1]):
            target = home[costs.reader[place]]
            if told[target] != tensor and costs.recomputes[stages[target, WAY]]:
                memory[0, target] += costs.received[INPUT, costs.shape_of[stages[target, LANE]], tensor]
            told[target] = tensor
    # Pairs of stages, the ns of their messages there and back, and where their ns on ports are: by source, target.
    lanes, most_ports = len(costs.shape_of), 0
    for pair in range(lanes * lanes):
        most_ports = max(most_ports, costs.port_first[pair + 1] - costs.port_first[pair])
    pairs, found = np.empty((count * (count - 1) // 2, 5), np.int64), 0
    held = np.empty((len(pairs), 2, most_ports), np.int64)
    pair_of = np.full(count, -1, np.int64)
    first = 0
    for source in range(count):
        end, lane, since = stages[source, END], stages[source, LANE], found
        for tensor in range(costs.first_made[first], costs.first_made[end]):
            if costs.last_reader[tensor] < end:
                continue
            leaves = False
            for place in range(costs.first_reader[tensor], costs.first_reader[tensor + 1]):
                target = home[costs.reader[place]]
                if target == source or told[target] == tensor:
                    continue
                told[target] = tensor
                size = costs.shape_of[stages[target, LANE]]
                if costs.recomputes[stages[target, WAY]]:
                    memory[0, target] += costs.received[INPUT, size, tensor]
                memory[1, target] += costs.received[BUFFER, size, tensor]
                other = stages[target, LANE]
                link = costs.link[lane, other]
                leaves = leaves or link >= 0
                pair = pair_of[target]
                if pair < since:
                    pair = found
                    while pair > since and pairs[pair - 1, 1] > target:
                        for column in range(5):
                            pairs[pair, column] = pairs[pair - 1, column]
                        pair_of[pairs[pair, 1]] = pair
                        pair -= 1
                    pairs[pair, 0], pairs[pair, 1], pairs[pair, 2], pairs[pair, 3] = source, target, 0, 0
                    pairs[pair, 4] = found
                    held[found] = 0
                    pair_of[target] = pair
                    found += 1
                for sent in range(2 if link >= 0 else 0):
                    ns = costs.sent[sent, link, tensor]
                    so_far = pairs[pair, 2 + sent]
                    pairs[pair, 2 + sent] = max(so_far, ns) if costs.mode == DELAY else so_far + ns
                    between = other * lanes + lane if sent == GRADIENT else lane * lanes + other
                    first_port = costs.port_first[between]
                    for port in range(first_port, costs.port_first[between + 1]):
                        ns = costs.occupied[sent, costs.ports[port, 1], tensor]
                        held[pairs[pair, 4], sent, port - first_port] += ns
            if leaves:
                memory[1, source] += costs.received[BUFFER, costs.shape_of[lane], tensor]
        first = end
    return _listed(costs.mode, lanes, costs.port_first, costs.ports, stages, pairs[:found], held)


@kernel
def _listed(
    mode: int,
    lanes: int,
    port_first: IntArray,
    ports: IntArray,
    stages: IntArray,
    pairs: IntArray,
    held: IntArray,
) -> Waits:
    """The rows of all pairs of stages that wait for each other, and who sends them. pairs, held: see `_waits`.

    Rows stand by who waits, then by who sends.
    """
    count, number = len(stages), len(pairs)
    first, rows = np.zeros((2, count + 1), np.int64), np.zeros((2 * number, 5), np.int64)
    sent_first, sent = np.zeros((2, count + 1), np.int64), np.empty(2 * number, np.int64)
    first[1, 0] = sent_first[1, 0] = number
    for pair in range(number):
        source, target = pairs[pair, 0], pairs[pair, 1]
        first[0, source + 1] += 1
        first[1, target + 1] += 1
        sent_first[0, target + 1] += 1
        sent_first[1, source + 1] += 1
    for kind in range(2):
        for at in range(count):
            first[kind, at + 1] += first[kind, at]
            sent_first[kind, at + 1] += sent_first[kind, at]
    free = first[1].copy()
    # Of each row the pair and the way whose ports it passes.
    passed = np.empty((2 * number, 2), np.int64)
    for pair in range(number):
        source, target = pairs[pair, 0], pairs[pair, 1]
        row = free[target]
        free[target] += 1
        rows[row, SENDER], rows[row, NS], rows[row, RECEIVER] = source, pairs[pair, 2], target
        rows[pair, SENDER], rows[pair, NS], rows[pair, RECEIVER] = target, pairs[pair, 3], source
        passed[row, 0], passed[row, 1], passed[pair, 0], passed[pair, 1] = pairs[pair, 4], 0, pairs[pair, 4], 1
    occupied_first, most = np.zeros(2 * number + 1, np.int64), held.shape[2]
    occupied, some = np.empty((2 * number * most, 2), np.int64), 0
    for row in range(2 * number):
        here, there = stages[rows[row, SENDER], LANE], stages[rows[row, RECEIVER], LANE]
        rows[row, LINK] = -1
        if mode != DELAY and here != there and rows[row, NS] > 0:
            pair = here * lanes + there
            rows[row, LINK] = min(pair, there * lanes + here) if mode == HALF else pair
            begin, end = port_first[pair], port_first[pair + 1]
            for place in range(begin, end):
                occupied[some, 0] = ports[place, 0]
                occupied[some, 1] = held[passed[row, 0], passed[row, 1], place - begin]
                some += 1
            rows[row, CONTENDED] = 1 if mode == HALF or end > begin else 0
        occupied_first[row + 1] = some
    for kind in range(2):
        free = sent_first[kind].copy()
        for row in range(kind * number, (kind + 1) * number):
            sent[free[rows[row, SENDER]]] = row
            free[rows[row, SENDER]] += 1
    return Waits(first, rows, sent_first, sent, occupied_first, occupied[:some])


@kernel
def drawn(random: IntArray) -> float:
    """A random number above 0 and below 1. random: the state, one number from 1 to MODULUS - 1."""
    random[0] = random[0] * FACTOR % MODULUS
    number: float = random[0] / MODULUS
    return number


@kernel
def below(random: IntArray, number: int) -> int:
    """A random whole number from 0 to number - 1."""
    return min(int(drawn(random) * number), number - 1)


@kernel
def neighbour(most: Most, stages: IntArray, shares: Shares, spread: float, random: IntArray) -> IntArray:
    """Rows of stages after a random move; no rows where what was drawn is no move.

    spread: places that a cut moves on average.
    """
    count, none = len(stages), stages[:0].copy()
    lanes, ways, most_stages, most_in_flight = most
    chosen, kind = drawn(random), 0
    while shares[kind] < chosen and kind < CARVE:
        kind += 1
    at = below(random, count)
    first = stages[at - 1, END] if at else 0
    made = stages.copy()
    if kind == CUT:
        far = 1 + int(-math.log(drawn(random)) * spread)
        made[at, END] += far if drawn(random) < 0.5 else -far
        fits = at < count - 1 and first < made[at, END] < stages[at + 1, END]
        return made if fits else none
    if kind == HOME:
        made[at, LANE] = below(random, lanes)
        return made if made[at, LANE] != stages[at, LANE] else none
    if kind == SPLIT:
        size = stages[at, END] - first
        if size < 2 or count >= most_stages:
            return none
        made = np.concatenate((stages[: at + 1], stages[at:]))
        made[at, END] = first + 1 + below(random, size - 1)
        later = drawn(random) < 0.5
        if drawn(random) < 0.5:
            made[at + later, LANE] = below(random, lanes)
        elif later and at + 2 < len(made):
            made[at + 1, LANE] = made[at + 2, LANE]
        elif not later and at:
            made[at, LANE] = made[at - 1, LANE]
        return made
    if kind == JOIN:
        if at == count - 1:
            return none
        made = np.concatenate((stages[:at], stages[at + 1 :]))
        if drawn(random) < 0.5:
            made[at, LANE], made[at, WAY], made[at, CAP] = stages[at, LANE], stages[at, WAY], stages[at, CAP]
        return made
    if kind == MANNER:
        made[at, WAY] = below(random, ways)
        return made if made[at, WAY] != stages[at, WAY] else none
    if kind == SWAP:
        other = below(random, count)
        made[at, LANE], made[other, LANE] = stages[other, LANE], stages[at, LANE]
        return made if stages[at, LANE] != stages[other, LANE] else none
    if kind == FLIGHT:
        made[at, CAP] += 1 if drawn(random) < 0.5 else -1
        return made if 0 < made[at, CAP] <= most_in_flight else none
    size = stages[at, END] - first
    if size < 3 or count >= most_stages - 1:
        return none
    begin = first + 1 + below(random, size - 2)
    end = begin + 1 + int(-math.log(drawn(random)) * spread)
    if end >= stages[at, END]:
        return none
    made = np.concatenate((stages[: at + 1], stages[at : at + 1], stages[at:]))
    made[at, END], made[at + 1, END], made[at + 1, LANE] = begin, end, below(random, lanes)
    return made


@kernel
def annealed(
    costs: Costs,
    here: IntArray,
    here_ns: int,
    lowest: IntArray,
    lowest_ns: int,
    split: bool,
    looks: tuple[int, int, int],
    heats: tuple[float, float],
    shares: Shares,
    spread: float,
    most_stages: int,
    random: IntArray,
) -> tuple[IntArray, int, IntArray, int]:
    """Rows of stages and their ns after some looks at neighbours, and the fastest of all, from those so far.

    looks: from which to which, of how many. heats: at the first and at the last of all, see `annealing.HOT`.
    """
    most = Most(len(costs.shape_of), len(costs.recomputes), most_stages, costs.micro_batches)
    for done in range(looks[0], looks[1]):
        heat = heats[0] * (heats[1] / heats[0]) ** (done / looks[2])
        made = neighbour(most, here, shares, spread, random)
        if not len(made):
            continue
        # A neighbour is gone on to with a chance of (ns / here_ns) ^ (-1 / heat); so it may take this at most.
        most_ns = min(ANY - 1, int(max(1, here_ns) * drawn(random) ** -heat))
        ns = look(costs, made, split, most_ns)
        if ns == ANY:
            continue
        here, here_ns = made, ns
        if ns < lowest_ns:
            lowest, lowest_ns = made, ns
    return here, here_ns, lowest, lowest_ns
