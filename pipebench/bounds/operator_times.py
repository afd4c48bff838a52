"""For each operator the least that it can cost, over all cuts of the mini-batch and ways to run it."""

from collections.abc import Callable

import numpy as np

from pipebench.bounds.cuts import Cut, cuts
from pipebench.bounds.splits import least_part, most_parts
from pipebench.bounds.ways import NEVER, Ways, ways
from pipebench.costs.communicate import ring_level
from pipebench.costs.formula import Formula
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem


def least(problem: Problem, cost: Callable[[Ways, Cut], IntArray]) -> IntArray:
    """For each operator the smallest cost over cuts, alternatives and device types, shape (operators,).

    cost(ways, cut): a cost for each way. A stage's times are the sums of its operators' rounded times, so the
    least rounded time of one operator is its share of any stage's time: nothing is lost to rounding.
    Recomputation of a stage only adds time.

    Raises InfeasibleProblem when the pins leave an operator no way to run.
    """
    operators = problem.profile.graph.operators
    smallest = np.full(len(operators), NEVER, dtype=np.int64)
    possible = cuts(problem)
    for rows in ways(problem):
        best = np.full(len(rows.operator), NEVER, dtype=np.int64)
        for cut in possible:
            fits = rows.devices * cut.replicas <= problem.cluster.size
            np.minimum(best, np.where(fits, cost(rows, cut), NEVER), out=best)
        np.minimum(smallest, rows.least(best, len(operators)), out=smallest)
    if (smallest == NEVER).any():
        name = operators[int(np.argmax(smallest == NEVER))].name
        raise InfeasibleProblem(
            f"the pins leave operator {name!r} no way to run on {problem.cluster.size} devices"
        )
    return smallest


def busy_ns(problem: Problem, rows: Ways, cut: Cut, split: bool = False) -> IntArray:
    """The least ns of one micro-batch that each row adds to its lane, forward and backward.

    split: on one device of operators that may be split (see `splits`).

    Where lanes run a forward and a backward at once (Problem.overlap o), less is added. Proof. A forward is in one
    pair at most, which hides at most o x its own time, and 1/2 ns by rounding. So a micro-batch adds at least the
    sum over its stage's operators of backward + (1 - o) forward, less 1/2. Rounded down with 1 ns taken off, and
    not below zero, the operators together give at most that: the first that is above zero takes off the 1/2.
    """
    whole = rows.run_ns(cut.samples)
    if not problem.overlap:
        return least_part(problem, rows, cut, whole) if split else whole
    parts = most_parts(problem, cut) if split else 1
    exposed = (whole - problem.overlap * rows.forward_ns(cut.samples)) / parts
    busy: IntArray = np.maximum(np.floor(exposed - 1), 0).astype(np.int64)
    return busy


def update_ns(problem: Problem, rows: Ways, cut: Cut) -> IntArray:
    """The least ns that the update of the weights of each row adds to its lane for one mini-batch.

    That of the fastest all-reduce: where the all-reduce takes longer an update takes no less.
    async: spread over the runs and rounded up behind each backward, as the cost model does.
    """
    formula = Formula(problem.regime, problem.mini_batch)
    update = formula.update_ns(_fastest(problem.cluster, rows, cut.replicas))
    if problem.regime.mode == "sync":
        return update
    return cut.runs * formula.update_share_ns(update, problem.mini_batch // cut.runs)


def every_stage_ns(problem: Problem) -> int:
    """The least ns that any stage adds to its lane for one mini-batch, whatever is in it."""
    return Formula(problem.regime, problem.mini_batch).update_ns(0)


def _fastest(cluster: Cluster, rows: Ways, replicas: int) -> IntArray:
    """Lower bound on each row's all-reduce time over `replicas` replicas, for any placement.

    n devices, copies counted, span at least the innermost level that holds n; a wider span adds levels and so
    never speeds up the slowest bandwidth, the latency or the share of a ring. A stage has at least as many
    tensor-parallel ranks as its operators' ways have devices, and each rank runs a ring.
    """
    reduced = np.zeros(len(rows.operator), dtype=np.int64)
    if replicas == 1:
        return reduced
    for devices in set(rows.devices.tolist()):
        if devices * replicas > cluster.size:
            continue
        chosen = rows.devices == devices
        level = ring_level(cluster, 0, devices * replicas - 1, devices)
        reduced[chosen] = Formula.all_reduce_ns(level, rows.parameter_bytes[chosen], replicas)
    return reduced
