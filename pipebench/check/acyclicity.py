"""C2: data edges and order edges between stages form no cycle (GraphPipe section 4, C2)."""

from pipebench.check.cycle import shortest_cycle
from pipebench.check.holders import data_edges
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def cyclic_stages(problem: Problem, plan: Plan) -> Witness | None:
    """A shortest cycle of stages; each step says whether tensors or an order edge make it.

    With routing `relay` a tensor that goes from stage i to stage j > i makes every step between them (the
    routing rule judges lists in which a tensor would have to go up).
    """
    data = data_edges(problem.profile.graph, plan)
    if plan.routing == "relay" and all(source < target for source, target in data):
        data |= {(hop, hop + 1) for source, target in data for hop in range(source, target)}
    successors: list[set[int]] = [set() for _ in plan.stages]
    for before, after in data | set(plan.order_edges):
        successors[before].add(after)
    cycle = shortest_cycle(successors)
    if not cycle:
        return None
    steps = [str(cycle[0])]
    for before, after in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        steps.append(f"{'->' if (before, after) in data else '-order->'} {after}")
    return Witness(rule="C2", message=f"cycle of stages: {' '.join(steps)}", stage=cycle[0])
