"""Bytes that each configuration keeps on a device, as the suite counts them."""

from collections.abc import Sequence

import numpy as np

from pipebench.costs.formula import Formula, Memory
from pipebench.costs.sharded_stage import ShardedStage
from pipebench.domain.plan import Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts
from pipebench_pase.space import IntArray, Space


def memory_tables(problem: Problem, samples: int, spaces: Sequence[Space]) -> list[IntArray]:
    """For each operator what its weights' state and what it saves of one micro-batch add to `every_stage`.

    An array by configuration. Weights of several operators count with each of them. Operators of one space whose
    figures are equal share an array.
    """
    graph = problem.profile.graph
    costs = {each.operator: each for each in problem.profile.on(problem.cluster.devices[0]).operators}
    made: dict[object, IntArray] = {}
    found = []
    for operator, space in zip(graph.operators, spaces, strict=True):
        weights = tuple(graph.parameter_bytes[name] for name in operator.parameters)
        sizes = tuple(graph.tensors[graph.tensor_index[name]].forward_bytes_per_sample for name in operator.inputs)
        key = id(space), weights, sizes, costs[operator.name].saved_bytes_per_sample
        if key not in made:
            made[key] = np.array(
                [
                    _added_bytes(problem, samples, operator.name, space.split(number), costs)
                    for number in range(len(space.configurations))
                ],
                np.int64,
            )
        found.append(made[key])
    return found


def every_stage(problem: Problem) -> Memory[int]:
    """The memory that every stage has, whatever is in it."""
    return Formula(problem.regime, problem.mini_batch).every_stage()


def _added_bytes(
    problem: Problem, samples: int, name: str, split: dict[str, int], costs: dict[str, OperatorCosts]
) -> int:
    devices = tuple(range(problem.cluster.size))
    stage = Stage(
        operators=(name,),
        devices=devices,
        tensor_parallel=len(devices),
        micro_batch=samples,
        sharding=(split,),
    )
    alone = ShardedStage(problem.profile.graph, stage, samples, problem.cluster)
    formula = Formula(problem.regime, problem.mini_batch)
    state = alone.weight_state(formula, 1) - formula.state_bytes(0, 1)
    return state + formula.live_bytes(alone.saved(costs)) - formula.live_bytes(0)


def workspace_bytes(problem: Problem) -> int:
    """Scratch memory of the operator that needs the most."""
    return max(each.workspace_bytes for each in problem.profile.on(problem.cluster.devices[0]).operators)
