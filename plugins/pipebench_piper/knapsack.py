"""One alternative for each operator of a stage: the least time whose memory fits.

Source: Piper (NeurIPS 2021), section 4 and its appendix on the knapsack, and the released heuristic.
"""

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray

MOST_STATES = 4096
"""Partial choices that the exact search keeps; where it would need more, the heuristic's choice stands."""

Choices = NDArray[np.int64]


@kernel
def greedy(time: FloatArray, held: FloatArray, count: IntArray, limit: float) -> tuple[float, float, Choices]:
    """The released heuristic: (time, price of a byte at its last swap, alternative of each operator).

    time, held: seconds and bytes, shape (operators, alternatives), of which the first count[i] exist. All
    fastest where that fits. Else the fastest are swapped for smaller ones, least seconds for a byte saved
    first, until it fits; where operators have two alternatives at most, savings count in full, with more of
    them only as far as they are needed. Time inf where not even the smallest fit. Ties: first listed.
    """
    nodes = time.shape[0]
    chosen = np.zeros(nodes, np.int64)
    total = smallest = 0.0
    two = True
    for i in range(nodes):
        low = 0
        for a in range(1, count[i]):
            if time[i, chosen[i]] > time[i, a]:
                chosen[i] = a
            if held[i, low] > held[i, a]:
                low = a
        two = two and count[i] <= 2
        total += held[i, chosen[i]]
        smallest += held[i, low]
    price = 0.0
    if total > limit:
        if smallest > limit:
            return np.inf, price, chosen
        excess = total - limit
        if two:
            ratio = np.full(nodes, np.inf)
            for i in range(nodes):
                other = 1 - chosen[i]
                if count[i] == 2 and held[i, chosen[i]] - held[i, other] > 1e-9:
                    ratio[i] = (time[i, other] - time[i, chosen[i]]) / (held[i, chosen[i]] - held[i, other])
            for i in np.argsort(ratio, kind="mergesort"):
                if ratio[i] == np.inf:
                    break
                excess -= held[i, chosen[i]] - held[i, 1 - chosen[i]]
                chosen[i] = 1 - chosen[i]
                price = ratio[i]
                if excess < 1e-9:
                    break
        while not two and excess > 1e-9:
            best, at, to = np.inf, -1, -1
            for i in range(nodes):
                for a in range(count[i]):
                    saved = held[i, chosen[i]] - held[i, a]
                    if saved > 1e-9:
                        ask = (time[i, a] - time[i, chosen[i]]) / min(saved, excess)
                        if ask < best:
                            best, at, to = ask, i, a
            if at < 0:
                return np.inf, price, chosen
            excess -= held[at, chosen[at]] - held[at, to]
            chosen[at] = to
            price = max(best, 0.0)
    spent = 0.0
    for i in range(nodes):
        spent += time[i, chosen[i]]
    return spent, price, chosen


@kernel
def lagrange_bounds(time: FloatArray, held: FloatArray, count: IntArray, price: float) -> FloatArray:
    """Lower bounds by Lagrange: entry i bounds what operators i, i + 1, … cost when a byte costs `price`.

    Shape (operators + 1,); entry 0 less price * limit bounds the time of every choice that fits.
    """
    nodes = time.shape[0]
    rest = np.zeros(nodes + 1)
    for i in range(nodes - 1, -1, -1):
        least = np.inf
        for a in range(count[i]):
            least = min(least, time[i, a] + price * held[i, a])
        rest[i] = rest[i + 1] + least
    return rest


@kernel
def exact(
    time: FloatArray, held: FloatArray, count: IntArray, limit: float, price: float, most: float
) -> tuple[float, bool, Choices]:
    """The least time below `most`: (time, proven, alternatives); (most, proven, -1s) where there is none.

    Partial choices, operator by operator, of which none has both less time and fewer bytes than another;
    those that the bound of `lagrange_bounds` shows to reach `most` are dropped. Not proven past MOST_STATES.
    """
    nodes = time.shape[0]
    chosen = np.full(nodes, -1, np.int64)
    rest = lagrange_bounds(time, held, count, price)
    lightest = np.zeros(nodes + 1)
    for i in range(nodes - 1, -1, -1):
        least = np.inf
        for a in range(count[i]):
            least = min(least, held[i, a])
        lightest[i] = lightest[i + 1] + least
    widest = time.shape[1]
    spent, used = np.zeros(1), np.zeros(1)
    before = np.zeros((nodes, MOST_STATES), np.int32)
    taken = np.zeros((nodes, MOST_STATES), np.int8)
    for i in range(nodes):
        size = spent.shape[0] * widest
        times, bytes_, origin = np.empty(size), np.empty(size), np.empty(size, np.int64)
        made = 0
        for state in range(spent.shape[0]):
            for a in range(count[i]):
                t, b = spent[state] + time[i, a], used[state] + held[i, a]
                if b + lightest[i + 1] <= limit and t + price * b + rest[i + 1] - price * limit < most:
                    times[made], bytes_[made], origin[made] = t, b, state * widest + a
                    made += 1
        order = np.argsort(times[:made], kind="mergesort")
        kept, fewest = 0, np.inf
        keep = np.empty(made, np.int64)
        for at in order:
            if bytes_[at] < fewest:
                fewest = bytes_[at]
                keep[kept] = at
                kept += 1
        if kept > MOST_STATES:
            return most, False, chosen
        spent, used = np.empty(kept), np.empty(kept)
        for state in range(kept):
            spent[state], used[state] = times[keep[state]], bytes_[keep[state]]
            before[i, state] = origin[keep[state]] // widest
            taken[i, state] = origin[keep[state]] % widest
    if spent.shape[0] == 0 or not spent[0] < most:
        return most, True, chosen
    state = 0
    for i in range(nodes - 1, -1, -1):
        chosen[i] = taken[i, state]
        state = before[i, state]
    return spent[0], True, chosen


@kernel
def choose(
    time: FloatArray, held: FloatArray, count: IntArray, limit: float, to_the_end: bool
) -> tuple[float, bool, Choices]:
    """The choice of one stage: the heuristic's, and `to_the_end` the best. (time, proven or greedy, choice)."""
    value, price, chosen = greedy(time, held, count, limit)
    if not to_the_end or value == np.inf or price == 0.0:
        return value, True, chosen
    if lagrange_bounds(time, held, count, price)[0] - price * limit >= value * (1 - 1e-12):
        return value, True, chosen
    better, proven, choice = exact(time, held, count, limit, price, value)
    if better < value:
        return better, proven, choice
    return value, proven, chosen
