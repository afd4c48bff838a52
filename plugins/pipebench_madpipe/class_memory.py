"""The memory without which no plan of MadPipe's class exists, whatever its period."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench_madpipe.stage_table import CUT_HELD, EACH, ONCE, WEIGHTS, WORKSPACE, RunTable

FAR = 2**60


@kernel
def least_special_bytes(table: RunTable, memory: int, normals: int) -> int:
    """The bytes left for the special GPU when `normals` other GPUs of `memory` bytes hold all that they can.

    Every stage keeps a micro-batch live when the whole chain does. Workspace counts on normal GPUs only.
    """
    length = table.layers.shape[1] - 1
    least = np.full((length + 1, 2, normals + 1), FAR, np.int64)
    least[0] = 0
    for end in range(1, length + 1):
        for first in range(end):
            own = (
                table.stages[end, first, WEIGHTS] + table.stages[end, first, ONCE] + table.stages[end, first, EACH]
            )
            own += table.layers[CUT_HELD, first]
            both = own + table.layers[CUT_HELD, end]
            fits = both + table.stages[end, first, WORKSPACE] <= memory
            for left in range(normals + 1):
                inside = least[first, 1, left]
                least[end, 0, left] = min(least[end, 0, left], inside + both)
                least[end, 1, left] = min(least[end, 1, left], inside + own)
                if fits and left > 0:
                    outside = least[first, 0, left - 1]
                    least[end, 0, left] = min(least[end, 0, left], outside)
                    least[end, 1, left] = min(least[end, 1, left], outside)
    return int(least[length, 0, normals])


def least_class_memory(table: RunTable, most: int, enough: int) -> int:
    """A lower bound in bytes, at most `enough`, on the memory of `most` GPUs with which a schedule exists."""
    low, high = 0, enough
    while low < high:
        middle = (low + high) // 2
        if least_special_bytes(table, middle, most - 1) <= middle:
            high = middle
        else:
            low = middle + 1
    return low
