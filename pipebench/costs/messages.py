"""The messages of a plan: which tensors cross between stages, and which link levels they meet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipebench.domain.cluster import Cluster, LinkLevel, as_one
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Message:
    """One tensor that stage `source` sends to stage `target`; its gradient goes the other way."""

    source: int
    target: int
    tensor: int


def stage_of_operators(graph: OperatorGraph, plan: Plan, positions: range | None = None) -> list[int]:
    """For each operator of the graph the stage that computes it. A clone of a constant counts in the first stage.

    positions: the stages of one pipeline. Default: the first pipeline.
    Raises InvalidValue for an operator that the graph does not have or that no stage holds.
    """
    return [each[0] for each in _holders(graph, plan, plan.pipeline_of(0) if positions is None else positions)]


def _holders(graph: OperatorGraph, plan: Plan, positions: range) -> list[list[int]]:
    """For each operator the stages that compute it, in order. Raises InvalidValue as `stage_of_operators` does."""
    holders: list[list[int]] = [[] for _ in graph.operators]
    index = graph.index
    for position in positions:
        for name in plan.stages[position].operators:
            if name not in index:
                raise InvalidValue(f"stage {position} holds {name!r}, which the graph does not have")
            holders[index[name]].append(position)
    for operator, stages in enumerate(holders):
        if not stages:
            raise InvalidValue(f"operator {graph.operators[operator].name!r} is in no stage")
    return holders


class Latest(Generic[T]):
    """What was made last for a plan: schedulers, check and simulator ask for that of one plan in turn."""

    def __init__(self) -> None:
        self._known: tuple[object, Plan, T] | None = None

    def get(self, of: object, plan: Plan, make: Callable[[], T]) -> T:
        """That of `of` and a plan. Neither can be changed, so the same ones have the same."""
        known = self._known
        if known is None or known[0] is not of or known[1] is not plan:
            known = self._known = of, plan, make()
        return known[2]


_latest: Latest[tuple[Message, ...]] = Latest()


def messages(graph: OperatorGraph, plan: Plan) -> tuple[Message, ...]:
    """All messages, in order of source, target and tensor. Each consuming stage receives a tensor once.

    Each pipeline of the plan has messages of its own; none crosses to another pipeline.
    A stage that holds a clone of the (constant) producer receives nothing.
    With routing `relay` the stages form a chain as listed; each stage passes a tensor on, up to its last consumer.
    """
    return _latest.get(graph, plan, lambda: _made(graph, plan))


def _made(graph: OperatorGraph, plan: Plan) -> tuple[Message, ...]:
    found: set[Message] = set()
    for first in range(0, len(plan.stages), plan.pipeline_length):
        found |= _of_pipeline(graph, plan, plan.pipeline_of(first))
    return tuple(sorted(found, key=lambda m: (m.source, m.target, m.tensor)))


def _of_pipeline(graph: OperatorGraph, plan: Plan, positions: range) -> set[Message]:
    """The messages between the stages at these positions, which hold all operators."""
    holders = _holders(graph, plan, positions)
    found: set[Message] = set()
    if len(positions) == 1:
        return found
    for tensor, producer in enumerate(graph.producers):
        if producer < 0:
            continue
        source = holders[producer][0]
        targets = {stage for reader in graph.consumers[tensor] for stage in holders[reader]}
        targets.difference_update(holders[producer])
        if plan.routing == "relay" and targets:
            hops = range(source, max(targets))
            found.update(Message(hop, hop + 1, tensor) for hop in hops)
        else:
            found.update(Message(source, target, tensor) for target in targets)
    return found


def stage_edges(graph: OperatorGraph, plan: Plan) -> list[tuple[int, int]]:
    """Data edges and order edges between stages, without repetition, ascending."""
    return sorted({(m.source, m.target) for m in messages(graph, plan)} | set(plan.order_edges))


def level_between(cluster: Cluster, senders: Sequence[int], receivers: Sequence[int]) -> LinkLevel:
    """The link level for a message between two sets of devices, see `slowest`."""
    return slowest(cluster, min(*senders, *receivers), max(*senders, *receivers))


def slowest(cluster: Cluster, lowest: int, highest: int) -> LinkLevel:
    """The slowest bandwidth and the largest latency of all levels up to the innermost that spans both ids."""
    return as_one(levels_crossed(cluster.levels, lowest, highest))


def levels_crossed(levels: tuple[LinkLevel, ...], lowest: int, highest: int) -> tuple[LinkLevel, ...]:
    """The levels up to the innermost that spans both ids, innermost first."""
    held = (number for number, level in enumerate(levels, 1) if lowest // level.group == highest // level.group)
    return levels[: next(held, len(levels))]
