"""From a partition of a linear order to a plan."""

from typing import Literal

from pipebench.costs.placement import place
from pipebench.domain.plan import Plan, Stage
from pipebench_pipedream.intervals import IntervalCosts
from pipebench_pipedream.partition import Partition


def plan_of(
    costs: IntervalCosts, partition: Partition, micro_batch: int, execution: Literal["sequential", "graph"]
) -> Plan:
    """The plan with one stage for each interval, on consecutive devices.

    sync, sequential: order edges between consecutive stages, the k-th stage from the end holds k
    micro-batches. sync, graph: data dependencies only, in-flight left to the scheduler. async: a chain, relayed
    unless every tensor goes to the next stage and every stage sends one there.
    """
    problem, graph = costs.problem, costs.model.graph
    count = len(partition.ends)
    micro_batches = problem.mini_batch // micro_batch
    sequential = problem.regime.mode == "sync" and execution == "sequential"
    devices = place(partition.replicas, problem.cluster.size)
    starts = (0, *partition.ends[:-1])
    stages = tuple(
        Stage(
            operators=tuple(graph.operators[operator].name for operator in costs.order[start:end]),
            devices=devices[position],
            data_parallel=partition.replicas[position],
            micro_batch=micro_batch,
            in_flight=min(count - position, micro_batches) * micro_batch if sequential else 0,
        )
        for position, (start, end) in enumerate(zip(starts, partition.ends, strict=True))
    )
    return Plan(
        stages=stages,
        order_edges=tuple((i, i + 1) for i in range(count - 1)) if sequential else (),
        routing="relay" if problem.regime.mode == "async" and costs.needs_relay(partition.ends) else "direct",
    )
