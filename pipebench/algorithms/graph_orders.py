"""Orders of an operator graph: what comes after each node, and the graph as a chain of layers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pipebench.domain.graph import OperatorGraph
from pipebench.domain.topology import topological_order


def descendants(successors: Sequence[Sequence[int]]) -> list[int]:
    """For each node the set of nodes that it leads to, itself left out.

    Raises InvalidValue with the cycle when there is one.
    """
    reached = [0] * len(successors)
    for node in reversed(topological_order(successors, [f"node {node}" for node in range(len(successors))])):
        for after in successors[node]:
            reached[node] |= reached[after] | 1 << after
    return reached


def pieces(count: int, joined: Iterable[Sequence[int]]) -> list[list[int]]:
    """Nodes from 0 on in pieces, by the first node of each; those that stand together in `joined` are of one."""
    first = list(range(count))

    def root(node: int) -> int:
        while first[node] != node:
            first[node] = node = first[first[node]]
        return node

    for nodes in joined:
        for node in nodes:
            first[root(node)] = root(nodes[0])
    found: dict[int, list[int]] = {}
    for node in range(count):
        found.setdefault(root(node), []).append(node)
    return list(found.values())


def transitive_reduction(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """The edges that no longer path implies, ascending; the smallest graph with the same precedences."""
    reached = descendants(successors)
    reduced = []
    for after in successors:
        implied = 0
        for node in after:
            implied |= reached[node]
        reduced.append(sorted({node for node in after if not implied >> node & 1}))
    return reduced


def members(bits: int) -> Iterator[int]:
    """The nodes of a bit set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def bit_set(nodes: Sequence[int]) -> int:
    """The bit set of some nodes."""
    bits = 0
    for node in nodes:
        bits |= 1 << node
    return bits


CutRule = Literal["operators", "layers"]


@dataclass(frozen=True, slots=True)
class Layers:
    """A chain of layers and what crosses between them.

    operators: for each layer the positions of its operators, in topological order. crossing: for each of the
    len(operators) - 1 cuts the tensors made before it and read behind it. relay: some tensor crosses more
    than one cut, so that a plan which cuts at both must pass it on (Plan.routing `relay`).
    """

    operators: tuple[tuple[int, ...], ...]
    crossing: tuple[tuple[int, ...], ...]
    relay: bool

    def __len__(self) -> int:
        return len(self.operators)


def linearise(graph: OperatorGraph, cuts: CutRule = "layers") -> Layers:
    """Cut the graph's topological order into layers.

    `layers`: a cut lies behind every operator after which at most one tensor is still to be read (the
    linearisation that MadPipe section 5.1 takes over from PipeDream); a graph that is a chain is cut
    everywhere. `operators`: a cut lies behind every operator, several tensors may cross it. Inputs of the
    model need no transfer and are not counted.
    """
    order = graph.topological
    spans = _spans(graph)
    every = range(len(order) - 1)
    if cuts == "operators":
        return _layers(order, spans, every)
    open_after = [0] * len(order)
    for first, last in spans:
        for position in range(first, last):
            open_after[position] += 1
    return _layers(order, spans, [position for position in every if open_after[position] <= 1])


def crosses_twice(layers: Layers, cuts: Sequence[int]) -> bool:
    """Whether some tensor crosses two of these cuts (positions in layers.crossing)."""
    seen: set[int] = set()
    for cut in cuts:
        if not seen.isdisjoint(layers.crossing[cut]):
            return True
        seen.update(layers.crossing[cut])
    return False


def _spans(graph: OperatorGraph) -> list[tuple[int, int]]:
    """For each tensor the places in topological order of its producer and of its last reader.

    An input of the model, and a tensor that nobody reads, spans nothing: (0, 0).
    """
    place = {operator: position for position, operator in enumerate(graph.topological)}
    spans = []
    for producer, readers in zip(graph.producers, graph.consumers, strict=True):
        if producer < 0 or not readers:
            spans.append((0, 0))
        else:
            spans.append((place[producer], max(place[reader] for reader in readers)))
    return spans


def _layers(order: Sequence[int], spans: Sequence[tuple[int, int]], cuts: Sequence[int]) -> Layers:
    bounds = [0, *(cut + 1 for cut in cuts), len(order)]
    operators = tuple(tuple(order[a:b]) for a, b in pairwise(bounds))
    crossing: list[list[int]] = [[] for _ in cuts]
    cut_at = {position: cut for cut, position in enumerate(cuts)}
    relay = False
    for tensor, (first, last) in enumerate(spans):
        crossed = [cut_at[position] for position in range(first, last) if position in cut_at]
        relay = relay or len(crossed) > 1
        for cut in crossed:
            crossing[cut].append(tensor)
    return Layers(operators, tuple(map(tuple, crossing)), relay)
