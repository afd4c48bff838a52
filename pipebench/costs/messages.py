"""The messages of a plan: which tensors cross from stage to stage, derived from the graph."""

from dataclasses import dataclass

from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan


@dataclass(frozen=True, slots=True)
class Message:
    """One tensor that stage `source` sends to stage `target`; its gradient goes the other way."""

    source: int
    target: int
    tensor: int


def stage_of_operators(graph: OperatorGraph, plan: Plan, positions: range | None = None) -> list[int]:
    """For each operator of the graph the stage that computes it; a clone of a constant counts in the first.

    positions: the stages of one pipeline, the first one's unless they are given.
    Raises InvalidValue for an operator that the graph does not have or that no stage holds.
    """
    stage_of = [-1] * len(graph.operators)
    for position in plan.pipeline_of(0) if positions is None else positions:
        for name in plan.stages[position].operators:
            if name not in graph.index:
                raise InvalidValue(f"stage {position} holds {name!r}, which the graph does not have")
            if stage_of[graph.index[name]] < 0:
                stage_of[graph.index[name]] = position
    for operator, stage_position in enumerate(stage_of):
        if stage_position < 0:
            raise InvalidValue(f"operator {graph.operators[operator].name!r} is in no stage")
    return stage_of


def messages(graph: OperatorGraph, plan: Plan) -> list[Message]:
    """All messages, in order of source, target and tensor. Each consuming stage receives a tensor once.

    Each pipeline of the plan has its own; none crosses from one to another. A stage that holds a clone of the
    (constant) producer receives nothing. With routing `relay` the stages form a chain as listed and a tensor is
    sent on by every stage up to its last consumer.
    """
    found: set[Message] = set()
    for first in range(0, len(plan.stages), plan.pipeline_length):
        found |= _of_pipeline(graph, plan, plan.pipeline_of(first))
    return sorted(found, key=lambda m: (m.source, m.target, m.tensor))


def _of_pipeline(graph: OperatorGraph, plan: Plan, positions: range) -> set[Message]:
    """The messages between the stages at these positions, which hold all operators."""
    stage_of = stage_of_operators(graph, plan, positions)
    holders: list[set[int]] = [set() for _ in graph.operators]
    for position in positions:
        for name in plan.stages[position].operators:
            holders[graph.index[name]].add(position)
    found: set[Message] = set()
    for tensor, producer in enumerate(graph.producers):
        if producer < 0:
            continue
        source = stage_of[producer]
        targets = {stage for reader in graph.consumers[tensor] for stage in holders[reader]} - holders[producer]
        if plan.routing == "relay" and targets:
            hops = range(source, max(targets))
            found.update(Message(hop, hop + 1, tensor) for hop in hops)
        else:
            found.update(Message(source, target, tensor) for target in targets)
    return found


def stage_edges(graph: OperatorGraph, plan: Plan) -> list[tuple[int, int]]:
    """Data edges and order edges between stages, without repetition, ascending."""
    return sorted({(m.source, m.target) for m in messages(graph, plan)} | set(plan.order_edges))
