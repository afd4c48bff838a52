"""When a repeating pattern has settled, and the exact period of one micro-batch from then on."""

import numpy as np

from pipebench.costs.quantise import IntArray

MOST_CYCLES = 64


def steady_period(ends: IntArray, window: int, group: IntArray) -> int | None:
    """The period for one micro-batch in ns, rounded up, or None when the run has not settled.

    ends: when each entry of the pattern ended in each repetition, shape (repetitions, entries). window: a
    repetition depends on no more than so many before it. group: the entries that depend on each other, shape
    (entries,); groups run at their own pace and the slowest counts.

    The state is settled when `window` repetitions in a row each come p ns after the one `cycles` before them,
    in all entries of a group alike: such a system of maxima and sums then repeats for ever, with p / cycles ns
    for one micro-batch (which need not be an integer; Baccelli, Cohen, Olsder and Quadrat 1992, section 3.7).
    """
    for cycles in range(1, min(MOST_CYCLES, len(ends) - window) + 1):
        gains = ends[-window:] - ends[-window - cycles : -cycles]
        settled = gains[-1]
        paces = np.full(int(group.max()) + 1, -1, np.int64)
        paces[group] = settled
        if (gains == settled).all() and (paces[group] == settled).all():
            return -(-int(paces.max()) // cycles)
    return None


def mean_period(ends: IntArray) -> int:
    """The mean growth over the later half of the repetitions, rounded up: what stands in for a settled run."""
    last = ends.max(axis=1)
    middle = len(last) // 2
    return -(-int(last[-1] - last[middle]) // max(len(last) - 1 - middle, 1))
