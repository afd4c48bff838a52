"""A plan's stages as a chain: the order they run in, and the transfers between them."""

from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.topology import topological_order


@dataclass(frozen=True, slots=True)
class Transfer:
    """All tensors from one stage to another: ns to send them, ns to send their gradients back."""

    source: int
    target: int
    forward_ns: int
    backward_ns: int


def chain_of_stages(model: CostModel, plan: Plan) -> list[int]:
    """The only order in which the stages can run.

    Raises UnsupportedProblem when data and order edges leave two stages unordered, or contradict the listed
    order of a relayed plan.
    """
    sent = model.messages(replace(plan, routing="direct"))
    pairs = {(m.source, m.target) for m in sent} | set(plan.order_edges)
    if plan.routing == "relay":
        backwards = sorted(pair for pair in pairs if pair[0] >= pair[1])
        if backwards:
            raise UnsupportedProblem(
                f"a relayed plan runs in the order listed, but stage {backwards[0][1]} waits for {backwards[0][0]}"
            )
        return list(range(len(plan.stages)))
    successors: list[list[int]] = [[] for _ in plan.stages]
    for before, after in sorted(pairs):
        successors[before].append(after)
    order = list(topological_order(successors, [f"stage {i}" for i in range(len(plan.stages))]))
    for before, after in pairwise(order):
        if (before, after) not in pairs:
            raise UnsupportedProblem(
                f"1F1B* needs the stages in a chain; nothing orders stages {before} and {after}",
                "give the plan order edges, or use a scheduler for stage graphs",
            )
    return order


def transfers_of(model: CostModel, plan: Plan, edges: list[Message]) -> list[Transfer]:
    """One transfer for each pair of stages that exchange tensors, in order of source and target."""
    totals: dict[tuple[int, int], tuple[int, int]] = {}
    for m in edges:
        forward, backward = totals.get((m.source, m.target), (0, 0))
        totals[m.source, m.target] = (
            forward + model.message_ns(plan, m),
            backward + model.message_ns(plan, m, backward=True),
        )
    return [Transfer(source, target, *times) for (source, target), times in sorted(totals.items())]
