"""Operators clustered into layers: few bytes cross between them, none has much more work than the mean."""

from itertools import pairwise

import numpy as np

from pipebench.algorithms.linearise import linearise
from pipebench.costs.quantise import FloatArray
from pipebench.domain.graph import OperatorGraph


def layers_of(graph: OperatorGraph, work: FloatArray, most: int, imbalance: float) -> list[tuple[int, ...]]:
    """Operators (positions) of each layer, in topological order; one each where there are few enough.

    Least largest number of bytes that cross a cut, ties by their sum, with work at most (1 + imbalance) of the
    mean (more where one operator has more). Source: Alpa section 5.2 (operator clustering), the released DP.
    """
    chain = linearise(graph, "operators")
    order = [operator for layer in chain.operators for operator in layer]
    count = len(order)
    if count <= most:
        return [(operator,) for operator in order]
    crossing = np.array(
        [0.0, *(sum(graph.tensors[t].forward_bytes_per_sample for t in cut) for cut in chain.crossing)]
    )
    done = np.concatenate([[0.0], np.cumsum(work[order])])
    limit = max((1 + imbalance) * done[-1] / most, float(work.max())) * (1 + 1e-9)
    largest, total = np.full(count + 1, np.inf), np.full(count + 1, np.inf)
    largest[0] = total[0] = 0.0
    back = []
    for _ in range(most):
        new_largest, new_total = np.full(count + 1, np.inf), np.full(count + 1, np.inf)
        link = np.zeros(count + 1, np.int64)
        for end in range(1, count + 1):
            start = int(np.searchsorted(done, done[end] - limit))
            if start >= end:
                continue
            tops = np.maximum(largest[start:end], crossing[start:end])
            sums = total[start:end] + crossing[start:end]
            choice = int(np.lexsort((sums, tops))[0])
            new_largest[end], new_total[end], link[end] = tops[choice], sums[choice], start + choice
        back.append(link)
        largest, total = new_largest, new_total
    if not np.isfinite(largest[count]):
        return _even(order, done, most)
    bounds, end = [count], count
    for link in reversed(back):
        end = int(link[end])
        bounds.append(end)
    bounds.reverse()
    return [tuple(order[a:b]) for a, b in pairwise(bounds)]


def _even(order: list[int], done: FloatArray, most: int) -> list[tuple[int, ...]]:
    """As even as operators allow: cut where another share of the work is done."""
    marks = np.searchsorted(done, done[-1] * np.arange(1, most) / most)
    bounds = sorted({0, len(order), *(int(mark) for mark in marks)})
    return [tuple(order[a:b]) for a, b in pairwise(bounds)]
