"""Which operators a group of devices holds, and the fewest devices that hold all of them in groups."""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

TOO_MANY = 1 << 30
NO_ROW = 1 << 58
"""As the time and the bytes of an operator that a group cannot hold."""
MOST_PAIRS = 256
"""Of time and memory that are kept; of more, neighbours are joined, which costs the least of each."""


class Table(NamedTuple):
    """Groups of devices. Operators and tensors by number. The rows of operator k of n start at first[k] on the
    first group, at first[n + k] on the second one.

    time_ns: for each kind of wait, of each row, shape (kinds, rows). round_ns: of each row, what others wait for.
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


class Groups(NamedTuple):
    """What is known of groups and sets of operators.

    devices: of each group. holds, lacks: of each group and set a time in which it may hold the set, and one in
    which it does not; both get what is found. Sets are bits of operators.
    """

    devices: IntArray
    holds: IntArray
    lacks: IntArray


@kernel
def cross(
    flow: Flow, table: Table, first: IntArray, one: int, operator: int, extra: IntArray, time_ns: int
) -> bool:
    """Whether a row of an operator of the set is quick enough; `extra` gets the buffers of those, -1 of others.

    first: of the rows of each operator on the group. time_ns: no sample may be longer under way.
    """
    some = False
    for row in range(first[operator], first[operator + 1]):
        longest = flow.above_ns[operator] + table.round_ns[row] + flow.below_ns[operator]
        held = 0
        for tensor in range(len(flow.makers)):
            ends, maker = flow.ends[tensor], flow.makers[tensor]
            inside = ends & one
            if not ends >> operator & 1 or inside == ends:
                continue
            if maker == operator:
                for reader in range(len(flow.here_ns)):
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
def fits(
    table: Table,
    first: IntArray,
    one: int,
    kind: int,
    extra: IntArray,
    room_ns: int,
    memory_bytes: int,
    pairs: IntArray,
    heads: IntArray,
) -> bool:
    """Whether a row of each operator of the set goes into the room and the memory together.

    pairs: room for time and memory of the best choices so far and of the next ones, the quickest first, shape
    (2, 2, MOST_PAIRS + 1). heads: room for a number of each row of an operator.
    """
    if room_ns < 0 or memory_bytes < 0:
        return False
    count, now = 1, 0
    pairs[0, 0, 0], pairs[0, 1, 0] = 0, 0
    for operator in range(len(first) - 1):
        if one >> operator & 1:
            rows = first[operator], first[operator + 1]
            now = 1 - now
            before, after = pairs[1 - now], pairs[now]
            count = _sums(table, rows, kind, extra, room_ns, memory_bytes, before, count, after, heads)
            if count == 0:
                return False
    return True


@kernel
def _sums(
    table: Table,
    rows: tuple[int, int],
    kind: int,
    extra: IntArray,
    room_ns: int,
    memory_bytes: int,
    pairs: IntArray,
    count: int,
    made: IntArray,
    heads: IntArray,
) -> int:
    """Puts the sums of a pair and a row that no other is as good as into `made`, and says how many they are.

    The sums of one row are in order, as the pairs are: the next one is the quickest of the first ones left.
    """
    begin, end = rows
    heads[: end - begin] = 0
    found, least = 0, memory_bytes + 1
    while True:
        time, row = room_ns + 1, -1
        for other in range(begin, end):
            if extra[other] >= 0 and heads[other - begin] < count:
                this = pairs[0, heads[other - begin]] + table.time_ns[kind, other]
                if this < time:
                    time, row = this, other
        if row < 0:
            return found
        memory = pairs[1, heads[row - begin]] + table.held_bytes[row] + extra[row]
        heads[row - begin] += 1
        if memory < least:
            least = memory
            if found and made[0, found - 1] == time:
                found -= 1
            if found == MOST_PAIRS:
                found -= 1
                time = made[0, found]
            made[0, found], made[1, found] = time, least
            found += 1


@kernel
def devices_that_might_do(
    flow: Flow, table: Table, known: Groups, time_ns: int, room_ns: int, memory_bytes: int
) -> IntArray:
    """Of each set of operators the fewest devices of a group that holds it by the least times and bytes of its
    operators, each by itself; and of a group of several devices. See `rounds.devices_of_sets`.
    """
    (groups, sets), operators, kinds = known.holds.shape, len(flow.here_ns), len(table.time_ns)
    needed = np.full((2, sets), TOO_MANY, np.int64)
    sums = np.zeros((kinds + 1, sets), np.int64)
    for group in range(groups):
        for operator in range(operators):
            least = np.full(kinds + 1, NO_ROW, np.int64)
            for row in range(
                table.first[group * operators + operator], table.first[group * operators + operator + 1]
            ):
                if table.held_bytes[row] <= memory_bytes:
                    for kind in range(kinds):
                        least[kind] = min(least[kind], table.time_ns[kind, row])
                    least[kinds] = min(least[kinds], table.held_bytes[row])
            for one in range(1 << operator):
                for column in range(kinds + 1):
                    sums[column, one | 1 << operator] = sums[column, one] + least[column]
        for one in range(1, sets):
            fits = sums[kinds, one] <= memory_bytes
            for kind in range(kinds):
                fits = fits and sums[kind, one] <= room_ns - flow.waits_ns[kind, one]
            if not fits:
                known.lacks[group, one] = max(known.lacks[group, one], time_ns)
            if known.holds[group, one] <= time_ns or known.lacks[group, one] < time_ns:
                note_group(needed, one, known.devices[group])
    return needed


@kernel
def note_group(needed: IntArray, one: int, devices: int) -> None:
    """A group of so many devices holds a set: see `fewest_of_sets`."""
    needed[0, one] = min(needed[0, one], devices)
    if devices > 1:
        needed[1, one] = min(needed[1, one], devices)


@kernel
def fewest_of_sets(needed: IntArray) -> tuple[IntArray, IntArray]:
    """For each set of operators the fewest devices of groups that hold it together; and where one of these groups
    has several devices. TOO_MANY or more where no groups do.

    needed: of each set the fewest devices of a group that holds it, and of a group of several devices, shape
    (2, sets).
    """
    sets = needed.shape[1]
    least, with_several = np.full(sets, TOO_MANY, np.int64), np.full(sets, TOO_MANY, np.int64)
    least[0] = 0
    for one in range(1, sets):
        lowest_bit = one & -one
        part = one
        while part:
            if part & lowest_bit:
                rest = one ^ part
                least[one] = min(least[one], needed[0, part] + least[rest])
                several = min(needed[1, part] + least[rest], needed[0, part] + with_several[rest])
                with_several[one] = min(with_several[one], several)
            part = (part - 1) & one
    return least, with_several
