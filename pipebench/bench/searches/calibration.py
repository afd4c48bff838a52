"""Three fixed workloads that say how fast this machine is at this moment.

A search time divided by the calibration that ran next to it moves far less from day to day than either: they
share the disturbance. One flavour for each kind of work, because they are not disturbed alike.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from pipebench.system.highs import free_threads, highs

CHAIN, PARTS = 72, 8
MATRIX = 96
ITEMS = 12


def calibrate() -> dict[str, float]:
    """CPU seconds of each workload, a few milliseconds each: interpreter, numpy, solver."""
    found_s = {name: _cpu_s(work) for name, work in WORKLOADS.items()}
    free_threads()  # for planners that run HiGHS on others than one
    return found_s


def _cpu_s(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def interpreter_bound() -> int:
    """Cut a chain into parts of least largest sum, by dynamic programming in plain Python."""
    costs = [(37 * i) % 101 + 1 for i in range(CHAIN)]
    sums = [0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    best = sums[:]
    for _ in range(PARTS - 1):
        best = [0] + [
            min(max(best[cut], sums[end] - sums[cut]) for cut in range(end)) for end in range(1, CHAIN + 1)
        ]
    return best[-1]


def numpy_bound() -> float:
    """Min-plus products of small matrices, as a vectorised dynamic program does."""
    import numpy as np

    table = np.arange(MATRIX * MATRIX, dtype=np.float64).reshape(MATRIX, MATRIX) * 37 % 101
    product = table
    for _ in range(2):
        product = (product[:, :, None] + table[None, :, :]).min(axis=1)
    return float(product.sum())


def solver_bound() -> float:
    """A small knapsack problem with three constraints, solved to the optimum on one thread."""
    solver: Any = highs().Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    solver.passModel(_knapsack())
    solver.run()
    return float(solver.getObjectiveValue())


@cache
def _knapsack() -> Any:
    import numpy as np

    highspy = highs()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = ITEMS, 3
    weights = [[(a * i * i + b) % 89 + 10 for i in range(1, ITEMS + 1)] for a, b in ((7, 3), (11, 5), (13, 1))]
    model.col_cost_ = np.array([-((17 * i * i) % 83 + 10) for i in range(1, ITEMS + 1)], dtype=np.float64)
    model.col_lower_, model.col_upper_ = np.zeros(ITEMS), np.ones(ITEMS)
    model.row_lower_ = np.full(3, -highspy.kHighsInf)
    model.row_upper_ = np.array([sum(row) // 2 for row in weights], dtype=np.float64)
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_ = np.arange(4) * ITEMS
    matrix.index_ = np.tile(np.arange(ITEMS), 3)
    matrix.value_ = np.array(weights, dtype=np.float64).ravel()
    model.integrality_ = [highspy.HighsVarType.kInteger] * ITEMS
    return model


WORKLOADS: dict[str, Callable[[], object]] = {
    "interpreter": interpreter_bound,
    "numpy": numpy_bound,
    "solver": solver_bound,
}
