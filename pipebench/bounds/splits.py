"""Bounds over plans that also split operators among the devices of a replica (Stage.sharding).

A stage with d replicas of t devices in c copies, an operator whose samples are cut into a parts and whose other
dims into r: each device runs it at ceil(b / (d a)) samples and takes at least 1 / r of that time, rounded up; a r
is at most t. So the d a parts of the samples are a cut with that many replicas, r at most devices / (c d a), and
the devices together take at least c d a times that time: `work` and the memory that is spread hold as they are.
"""

from msgspec.structs import replace

from pipebench.bounds.cuts import Cut
from pipebench.bounds.ways import Ways
from pipebench.costs.quantise import IntArray
from pipebench.domain.problem import Problem


def freely_split(problem: Problem) -> Problem:
    """The problem without its pins of degrees inside a stage: an operator's split may go beyond both."""
    return replace(problem, pins=replace(problem.pins, data_parallel=None, tensor_parallel=None))


def least_part(problem: Problem, rows: Ways, cut: Cut, whole_ns: IntArray) -> IntArray:
    """The least ns on one device of operators that take `whole_ns` at the cut's samples without a split."""
    del rows
    parts: IntArray = -(-whole_ns // most_parts(problem, cut))
    return parts


def most_parts(problem: Problem, cut: Cut) -> int:
    """Into how many parts the devices of a replica can split an operator."""
    return max(1, problem.cluster.size // cut.replicas)
