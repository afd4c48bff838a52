"""The longest paths to operators."""

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.domain.graph import OperatorGraph


def before_each(graph: OperatorGraph, lengths: IntArray, first: IntArray | None = None) -> IntArray:
    """For each operator the longest sum of lengths along a path to it, itself left out.

    first: lengths of an operator that is the first of its path; not less than its others.
    """
    above = [0] * len(lengths)
    each, alone = lengths.tolist(), (lengths if first is None else first).tolist()
    for operator in graph.topological:
        for before in graph.predecessors[operator]:
            above[operator] = max(above[operator], above[before] + each[before], alone[before])
    return np.array(above, dtype=np.int64)
