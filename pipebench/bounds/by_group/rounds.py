"""Which operators a group of devices has time for, where memory limits how many micro-batches are live at once.

A micro-batch is live from its forward to its backward, and between them it goes to all operators behind and comes
back. Where only few are live at once, the others wait for them: a mini-batch takes several rounds.
Docs: cost-model.md, section 11, lemma 12.
"""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.bounds.by_group.partition import MOST_PAIRS, TOO_MANY, Flow, Groups, Table, cross, fits, note_group
from pipebench.costs.quantise import IntArray

MOST_STEPS = 20_000
"""Rows of operators that are tried for one set; a set that needs more counts as held."""


class Rounds(NamedTuple):
    """What rows and operators say of micro-batches that are live, beside their `Table`.

    state_bytes, saved_bytes, full, size: of each row, see `group_tables.COLUMNS`; size of its micro-batches.
    runs: of each row on the first replica; in a pattern of all replicas.
    turns: of each row, replicas that take micro-batches in turn.
    stay_ns: of each row from the start of its forward to the end of its input gradient, at least.
    apart_ns: of each row, what two forwards or two input gradients are apart at least.
    start_ns, end_ns: of each operator, before its first forward and behind its last input gradient.
    behind: of each two operators whether the second is behind the first.
    pattern: 1 where a mini-batch has neither beginning nor end.
    """

    state_bytes: IntArray
    saved_bytes: IntArray
    full: IntArray
    size: IntArray
    runs: IntArray
    turns: IntArray
    stay_ns: IntArray
    apart_ns: IntArray
    start_ns: IntArray
    end_ns: IntArray
    behind: IntArray
    pattern: int


@kernel
def devices_of_sets(
    flow: Flow,
    table: Table,
    rounds: Rounds,
    known: Groups,
    most: IntArray,
    time_ns: int,
    room_ns: int,
    memory_bytes: int,
) -> IntArray:
    """Of each set of operators the fewest devices of a group that may hold it, and of a group of several devices,
    shape (2, sets); TOO_MANY where none may.

    most: of each set the most devices of a group that is of use. room_ns: of a device for what it runs.
    """
    groups, sets = known.holds.shape
    operators, (kinds, rows) = len(flow.here_ns), table.time_ns.shape
    needed = np.full((2, sets), TOO_MANY, np.int64)
    extra = np.zeros(rows, np.int64)
    longest = 1
    for each in range(groups * operators):
        longest = max(longest, table.first[each + 1] - table.first[each])
    pairs, heads = np.zeros((2, 2, MOST_PAIRS + 1), np.int64), np.zeros(longest, np.int64)
    places = np.zeros(operators + 1, np.int64), np.zeros(operators + 1, np.int64)
    spent, least = np.zeros((operators + 1, kinds + 1), np.int64), np.zeros((operators + 1, kinds + 1), np.int64)
    limits = np.zeros(kinds + 1, np.int64)
    limits[kinds] = memory_bytes
    for group in range(groups):
        first = table.first[group * operators : (group + 1) * operators + 1]
        for one in range(1, sets):
            if (
                known.devices[group] > most[one]
                or needed[min(known.devices[group] - 1, 1), one] <= known.devices[group]
            ):
                continue
            if known.holds[group, one] > time_ns:
                if known.lacks[group, one] >= time_ns:
                    continue
                for kind in range(kinds):
                    limits[kind] = room_ns - flow.waits_ns[kind, one]
                sums = spent, least, limits
                if not _held(flow, table, rounds, first, one, extra, pairs, heads, places, sums, time_ns, room_ns):
                    known.lacks[group, one] = time_ns
                    continue
                known.holds[group, one] = time_ns
            note_group(needed, one, known.devices[group])
    return needed


@kernel
def _held(
    flow: Flow,
    table: Table,
    rounds: Rounds,
    first: IntArray,
    one: int,
    extra: IntArray,
    pairs: IntArray,
    heads: IntArray,
    places: tuple[IntArray, IntArray],
    sums: tuple[IntArray, IntArray, IntArray],
    time_ns: int,
    room_ns: int,
) -> bool:
    """Whether a group may hold a set of operators: one row of each of them has to meet everything together, both
    kinds of time, memory, and rounds. Before that, each kind of time is looked at with memory alone.
    """
    chosen, _ = places
    _, least, limits = sums
    count = 0
    for operator in range(len(first) - 1):
        if one >> operator & 1:
            if not cross(flow, table, first, one, operator, extra, time_ns):
                return False
            chosen[count] = operator
            count += 1
    for kind in range(len(limits) - 1):
        if not fits(table, first, one, kind, extra, limits[kind], limits[-1], pairs, heads):
            return False
    # int: else numba compiles both a second time, for a count that is the constant 0.
    _least_left(table, first, chosen, int(count), extra, least)
    return _some(table, rounds, first, places, int(count), extra, sums, time_ns, room_ns)


@kernel
def _cost(table: Table, extra: IntArray, row: int, column: int) -> int:
    """Of a row its time of a kind, or in the last column its bytes."""
    kinds = len(table.time_ns)
    return int(table.time_ns[column, row] if column < kinds else table.held_bytes[row] + extra[row])


@kernel
def _least_left(
    table: Table, first: IntArray, chosen: IntArray, count: int, extra: IntArray, least: IntArray
) -> None:
    """`least` gets, from each operator of a set on, the least sums. Each operator has a row."""
    least[count] = 0
    for place in range(count - 1, -1, -1):
        some = False
        for row in range(first[chosen[place]], first[chosen[place] + 1]):
            if extra[row] < 0:
                continue
            for column in range(least.shape[1]):
                cost = least[place + 1, column] + _cost(table, extra, row, column)
                least[place, column] = min(least[place, column], cost) if some else cost
            some = True


@kernel
def _some(
    table: Table,
    rounds: Rounds,
    first: IntArray,
    places: tuple[IntArray, IntArray],
    count: int,
    extra: IntArray,
    sums: tuple[IntArray, IntArray, IntArray],
    time_ns: int,
    room_ns: int,
) -> bool:
    """Whether some rows of the operators meet everything, or too many would have to be tried."""
    chosen, at = places
    spent, least, limits = sums
    place, steps = 0, 0
    at[0] = first[chosen[0]] - 1
    spent[0] = 0
    while place >= 0:
        if place == count:
            return True
        at[place] += 1
        row = at[place]
        if row == first[chosen[place] + 1]:
            place -= 1
            continue
        steps += 1
        if steps > MOST_STEPS:
            return True
        fits = extra[row] >= 0
        for column in range(len(limits)):
            if fits:
                spent[place + 1, column] = spent[place, column] + _cost(table, extra, row, column)
                fits = spent[place + 1, column] + least[place + 1, column] <= limits[column]
        if fits and in_rounds(rounds, chosen, at, place + 1, time_ns, room_ns, limits[-1]):
            place += 1
            if place < count:
                at[place] = first[chosen[place]] - 1
    return False


@kernel
def in_rounds(
    rounds: Rounds, chosen: IntArray, row: IntArray, count: int, time_ns: int, room_ns: int, memory_bytes: int
) -> bool:
    """Whether each of the first operators of a set has time for all its micro-batches, of which memory lets
    so many be live. With more operators there is less memory, and so less time: so no further ones mend it.
    """
    free = memory_bytes
    for place in range(count):
        free -= rounds.state_bytes[row[place]]
    for place in range(count):
        one = row[place]
        if rounds.full[one] == 0 or rounds.saved_bytes[one] == 0 or rounds.stay_ns[one] == 0:
            continue
        if rounds.pattern:
            at_once = -(-rounds.runs[one] * rounds.stay_ns[one] // (rounds.turns[one] * max(time_ns, 1)))
            if _bytes_of(rounds, chosen, row, count, place, at_once) > free:
                return False
            continue
        runs = rounds.runs[one]
        low, high = 0, runs
        while low < high:
            middle = (low + high + 1) // 2
            if _bytes_of(rounds, chosen, row, count, place, middle) <= free:
                low = middle
            else:
                high = middle - 1
        if low == 0:
            return False
        full = -(-runs // low)
        others = runs - 1 - (full - 1) * low
        stay = rounds.stay_ns[one]
        needed = min(full * stay + others * rounds.apart_ns[one], (full + 1) * stay)
        operator = chosen[place]
        if needed > room_ns - rounds.start_ns[operator] - rounds.end_ns[operator]:
            return False
    return True


@kernel
def _bytes_of(rounds: Rounds, chosen: IntArray, row: IntArray, count: int, place: int, live: int) -> int:
    """What so many live micro-batches of an operator need, with what operators before it in the set hold."""
    one = row[place]
    total = live * rounds.saved_bytes[one]
    for other in range(count):
        held = row[other]
        if not rounds.behind[chosen[other], chosen[place]]:
            continue
        if rounds.turns[one] > 1 and rounds.size[held] != rounds.size[one]:
            continue
        times = -(-live * rounds.size[one] // rounds.size[held]) if rounds.full[held] else min(live, 1)
        total += times * rounds.saved_bytes[held]
    return int(total)
