"""Bytes that each configuration keeps on a device, as the suite counts them."""

from collections.abc import Sequence

import numpy as np

from pipebench.costs.sharded_stage import ShardedStage
from pipebench.domain.plan import Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts
from pipebench_pase.space import IntArray, Space


def memory_tables(problem: Problem, samples: int, spaces: Sequence[Space]) -> list[IntArray]:
    """For each operator the bytes of its weights' state and of what one micro-batch saves, by configuration.

    Weights of several operators count with each of them. Operators of one space whose figures are equal share an
    array.
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
                    _bytes(problem, samples, operator.name, space.split(number), costs)
                    for number in range(len(space.configurations))
                ],
                np.int64,
            )
        found.append(made[key])
    return found


def _bytes(
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
    return alone.weight_state(problem.regime, 1) + alone.saved(costs)


def workspace_bytes(problem: Problem) -> int:
    """Scratch memory of the operator that needs the most."""
    return max(each.workspace_bytes for each in problem.profile.on(problem.cluster.devices[0]).operators)
