"""The fewest devices that hold all operators, each group of devices no more than it has time and memory for."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

TOO_MANY = 1 << 30


@kernel
def fewest_devices(
    costs: IntArray, devices: IntArray, weights: IntArray, room: IntArray, waits: IntArray, buffers: IntArray
) -> int:
    """At least so many devices hold all operators; TOO_MANY where no groups do.

    costs: of each sum that must fit, on each group, of each operator, shape (sums, groups, operators).
    devices: of each group, ascending.
    weights: of each sum its weight of time, its weight of memory and its row of `waits`, shape (sums, 3).
    room: time and memory of a device. waits: time that a device lacks that holds a set of operators, shape
    (kinds, sets); buffers: memory that it lacks on each group, shape (groups, sets). Sets are bits of operators.
    """
    sums, groups, operators = costs.shape
    sets = 1 << operators
    needed = np.full(sets, TOO_MANY, np.int64)
    held = np.zeros((sums, sets), np.int64)
    for group in range(groups):
        for one in range(1, sets):
            lowest = 0
            while not (one >> lowest) & 1:
                lowest += 1
            rest = one & (one - 1)
            fits = True
            for each in range(sums):
                held[each, one] = held[each, rest] + costs[each, group, lowest]
                time = room[0] - waits[weights[each, 2], one]
                memory = room[1] - buffers[group, one]
                if held[each, one] > weights[each, 0] * time + weights[each, 1] * memory:
                    fits = False
            if fits:
                needed[one] = min(needed[one], devices[group])
    least = np.full(sets, TOO_MANY, np.int64)
    least[0] = 0
    for one in range(1, sets):
        lowest_bit = one & -one
        part = one
        while part:
            if part & lowest_bit:
                least[one] = min(least[one], needed[part] + least[one ^ part])
            part = (part - 1) & one
    return int(least[sets - 1])
