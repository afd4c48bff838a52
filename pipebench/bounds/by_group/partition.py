"""Which operators a group of devices holds, and the fewest devices that hold all of them in groups."""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

TOO_MANY = 1 << 30
MOST_PAIRS = 256
"""Of time and memory that are kept; of more, neighbours are joined, which costs the least of each."""


class Table(NamedTuple):
    """A group of devices. Operators and tensors by number; the rows of operator k start at first[k].

    time_ns: of each row, for each kind of wait, shape (rows, kinds). round_ns: of each row, what others wait for.
    held_bytes: of each row. made_bytes, read_bytes, made_ns, read_ns: of each row, of each tensor that crosses.
    """

    first: IntArray
    time_ns: IntArray
    round_ns: IntArray
    held_bytes: IntArray
    made_bytes: IntArray
    read_bytes: IntArray
    made_ns: IntArray
    read_ns: IntArray


class Flow(NamedTuple):
    """What a graph says of sets of operators.

    makers: of each tensor. ends: of each tensor its maker and readers, as a set.
    buffered: 1 where a stage with the operator holds buffers.
    above_ns, here_ns, below_ns: what one sample takes before an operator, in it, and behind it, on longest paths.
    waits_ns: time that a device lacks that holds a set, shape (kinds, sets).
    """

    makers: IntArray
    ends: IntArray
    buffered: IntArray
    above_ns: IntArray
    here_ns: IntArray
    below_ns: IntArray
    waits_ns: IntArray


@kernel
def sets_held(
    flow: Flow, table: Table, known: IntArray, time_ns: int, room_ns: int, memory_bytes: int
) -> IntArray:
    """Of each set of operators whether the group may hold it: 1 or 0.

    known: of each set 1 or 0 where that is known, else -1. time_ns: no sample may be longer under way.
    room_ns: of a device for what it runs.
    """
    operators, sets = len(table.first) - 1, len(known)
    rows, kinds = table.time_ns.shape
    found = np.zeros(sets, np.int64)
    extra = np.zeros(rows, np.int64)
    pairs = np.zeros((2, MOST_PAIRS + 1), np.int64)
    made = np.zeros((2, (MOST_PAIRS + 1) * max(1, rows)), np.int64)
    for one in range(1, sets):
        if known[one] >= 0:
            found[one] = known[one]
            continue
        fits = True
        for operator in range(operators):
            if fits and one >> operator & 1:
                fits = cross(flow, table, one, operator, extra, time_ns)
        for kind in range(kinds):
            if fits:
                room = room_ns - flow.waits_ns[kind, one]
                fits = _fits(table, one, kind, extra, room, memory_bytes, pairs, made)
        found[one] = 1 if fits else 0
    return found


@kernel
def cross(flow: Flow, table: Table, one: int, operator: int, extra: IntArray, time_ns: int) -> bool:
    """Whether a row of an operator of the set is quick enough; `extra` gets the buffers of those, -1 of others."""
    some = False
    for row in range(table.first[operator], table.first[operator + 1]):
        longest = flow.above_ns[operator] + table.round_ns[row] + flow.below_ns[operator]
        held = 0
        for tensor in range(len(flow.makers)):
            ends, maker = flow.ends[tensor], flow.makers[tensor]
            inside = ends & one
            if not ends >> operator & 1 or inside == ends:
                continue
            if maker == operator:
                for reader in range(len(table.first) - 1):
                    if (ends & ~one) >> reader & 1:
                        after = flow.here_ns[reader] + flow.below_ns[reader]
                        around = flow.above_ns[operator] + table.round_ns[row] + table.made_ns[row, tensor] + after
                        longest = max(longest, around)
                held += table.made_bytes[row, tensor] * flow.buffered[operator]
            elif not one >> maker & 1:
                ahead = flow.above_ns[maker] + flow.here_ns[maker] + table.read_ns[row, tensor]
                longest = max(longest, ahead + table.round_ns[row] + flow.below_ns[operator])
                if flow.buffered[operator] and _is_first(flow, inside, operator):
                    held += table.read_bytes[row, tensor]
        extra[row] = held if longest <= time_ns else -1
        some = some or longest <= time_ns
    return some


@kernel
def _is_first(flow: Flow, readers: int, operator: int) -> bool:
    """Whether no other reader with buffers comes before: one of them is charged for a tensor."""
    others = 0
    for other in range(operator):
        others += (readers >> other & 1) * flow.buffered[other]
    return others == 0


@kernel
def _fits(
    table: Table,
    one: int,
    kind: int,
    extra: IntArray,
    room_ns: int,
    memory_bytes: int,
    pairs: IntArray,
    made: IntArray,
) -> bool:
    """Whether a row of each operator of the set goes into the room and the memory together.

    pairs: time and memory of the best choices so far, the quickest first. made: room for the next ones.
    """
    if room_ns < 0 or memory_bytes < 0:
        return False
    count = 1
    pairs[0, 0], pairs[1, 0] = 0, 0
    for operator in range(len(table.first) - 1):
        if not one >> operator & 1:
            continue
        more = 0
        for row in range(table.first[operator], table.first[operator + 1]):
            if extra[row] < 0:
                continue
            for at in range(count):
                time = pairs[0, at] + table.time_ns[row, kind]
                memory = pairs[1, at] + table.held_bytes[row] + extra[row]
                if time <= room_ns and memory <= memory_bytes:
                    made[0, more], made[1, more] = time, memory
                    more += 1
        if more == 0:
            return False
        count = _best(made, more, pairs)
    return True


@kernel
def _best(made: IntArray, more: int, pairs: IntArray) -> int:
    """Puts the choices that no other is as good as into `pairs`, and says how many they are."""
    count = 0
    least = np.iinfo(np.int64).max
    for at in np.argsort(made[0, :more]):
        if made[1, at] < least:
            least = made[1, at]
            if count and pairs[0, count - 1] == made[0, at]:
                count -= 1
            if count == MOST_PAIRS:
                count -= 1
                pairs[1, count] = least
            else:
                pairs[0, count], pairs[1, count] = made[0, at], least
            count += 1
    return count


@kernel
def fewest_devices(needed: IntArray, several: bool = False) -> int:
    """The fewest devices for all operators; TOO_MANY or more where no groups hold them.

    needed: of each set the fewest devices of a group that holds it. Sets are bits of operators.
    several: some group has more than one device.
    """
    sets = len(needed)
    least, with_several = np.full(sets, TOO_MANY, np.int64), np.full(sets, TOO_MANY, np.int64)
    least[0] = 0
    for one in range(1, sets):
        lowest_bit = one & -one
        part = one
        while part:
            if part & lowest_bit:
                rest = one ^ part
                least[one] = min(least[one], needed[part] + least[rest])
                other = least[rest] if needed[part] > 1 else with_several[rest]
                with_several[one] = min(with_several[one], needed[part] + other)
            part = (part - 1) & one
    return int(with_several[sets - 1] if several else least[sets - 1])
