"""Stages of equal numbers of layers, each with the same number of replicas."""

from collections.abc import Sequence
from itertools import pairwise

from pipebench.algorithms.degrees import Way
from pipebench.costs.messages import messages
from pipebench.costs.placement import place
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem


def even_plan(
    problem: Problem,
    contents: Sequence[tuple[int, ...]],
    replicas: int,
    micro_batch: int,
    run: Way,
    *,
    one_f_one_b: bool = True,
) -> Plan:
    """Stages of these operators (positions), in sequence on consecutive devices.

    The frameworks that cut so run stages in sequence, on a multi-branch graph too: order edges tie consecutive
    stages in sync; in async they form a chain that passes tensors on. one_f_one_b (sync): the k-th stage from the
    end keeps k micro-batches in flight; else the scheduler decides.
    """
    graph = problem.profile.graph
    count = len(contents)
    micro_batches = problem.mini_batch // micro_batch
    sync = problem.regime.mode == "sync"
    placed = place([replicas * run.tensor_parallel] * count, problem.cluster.size)
    stages = tuple(
        Stage(
            operators=tuple(graph.operators[operator].name for operator in operators),
            devices=placed[position],
            data_parallel=replicas,
            tensor_parallel=run.tensor_parallel,
            micro_batch=micro_batch,
            in_flight=min(count - position, micro_batches) * micro_batch if sync and one_f_one_b else 0,
            choice=run.chosen(operators),
            recompute=run.recompute,
        )
        for position, operators in enumerate(contents)
    )
    if sync:
        return Plan(stages=stages, order_edges=tuple(pairwise(range(count))))
    edges = {(m.source, m.target) for m in messages(graph, Plan(stages=stages))}
    chained = edges == set(pairwise(range(count)))
    return Plan(stages=stages, routing="direct" if chained else "relay")
