"""Graphs as successor lists, for tests of graph algorithms."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import strategies as st

from pipebench_graphpipe.series_parallel import LeafNode, Node, ParallelNode, SeriesNode

Edges = Iterable[tuple[int, int]]


def graph(operators: int, edges: Edges) -> list[list[int]]:
    """Successor lists."""
    successors: list[list[int]] = [[] for _ in range(operators)]
    for before, after in sorted(set(edges)):
        successors[before].append(after)
    return successors


def chain(operators: int) -> list[list[int]]:
    """0, 1, 2, …"""
    return graph(operators, [(i, i + 1) for i in range(operators - 1)])


def branches(lengths: Sequence[int], behind: int) -> list[list[int]]:
    """Chains side by side, then a chain of `behind` operators that joins them."""
    edges: list[tuple[int, int]] = []
    count, ends = 0, []
    for length in lengths:
        edges += [(count + i, count + i + 1) for i in range(length - 1)]
        count += length
        ends.append(count - 1)
    for _ in range(behind):
        edges += [(end, count) for end in ends]
        ends = [count]
        count += 1
    return graph(count, edges)


@st.composite
def dags(draw: st.DrawFn, most: int) -> list[list[int]]:
    """Any directed acyclic graph; operators are numbered at random."""
    operators = draw(st.integers(1, most))
    rng = draw(st.randoms(use_true_random=False))
    names = list(range(operators))
    rng.shuffle(names)
    reach = draw(st.integers(1, 12))
    edges = set()
    for after in range(1, operators):
        for _ in range(rng.randint(0, 3)):
            edges.add((names[rng.randint(max(0, after - reach), after - 1)], names[after]))
    return graph(operators, edges)


@st.composite
def sp_trees(draw: st.DrawFn, depth: int = 3) -> Node:
    """Series-parallel trees with operators numbered at random; between two forks stands an operator."""
    shape = draw(_series(depth))
    count = _count(shape)
    names = list(draw(st.permutations(range(count))))
    return ordered(_named(shape, iter(names)))


def _series(depth: int):  # type: ignore[no-untyped-def]
    if depth == 0:
        return st.just(["leaf"])
    fork = st.lists(_series(depth - 1), min_size=2, max_size=3).map(tuple)
    return st.lists(st.one_of(st.just("leaf"), fork), min_size=1, max_size=4).map(_separated)


def _separated(parts):  # type: ignore[no-untyped-def]
    found: list[object] = []
    for part in parts:
        if part != "leaf" and found and found[-1] != "leaf":
            found.append("leaf")
        found.append(part)
    return found


def _count(shape) -> int:  # type: ignore[no-untyped-def]
    return 1 if shape == "leaf" else sum(map(_count, shape))


def _named(shape, names) -> Node:  # type: ignore[no-untyped-def]
    if shape == "leaf":
        return LeafNode(next(names))
    parts = [_named(part, names) for part in shape]
    if isinstance(shape, tuple):
        inner = [b for part in parts for b in (part.children if isinstance(part, ParallelNode) else (part,))]
        return ParallelNode(tuple(inner))
    return parts[0] if len(parts) == 1 else SeriesNode(tuple(parts))  # type: ignore[arg-type]


def ordered(node: Node) -> Node:
    """The tree with branches by their lowest operator."""
    if isinstance(node, LeafNode):
        return node
    children = [ordered(child) for child in node.children]
    if isinstance(node, SeriesNode):
        return SeriesNode(tuple(children))  # type: ignore[arg-type]
    return ParallelNode(tuple(sorted(children, key=_lowest)))  # type: ignore[arg-type]


def _lowest(node: Node) -> int:
    return node.operator if isinstance(node, LeafNode) else min(map(_lowest, node.children))


def edges_of(node: Node) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Sources, sinks and edges of the graph of a tree."""
    if isinstance(node, LeafNode):
        return [node.operator], [node.operator], []
    inner = [edges_of(child) for child in node.children]
    edges = [edge for _, _, found in inner for edge in found]
    if isinstance(node, ParallelNode):
        return [s for one, _, _ in inner for s in one], [s for _, one, _ in inner for s in one], edges
    for (_, sinks, _), (sources, _, _) in pairwise(inner):
        edges += [(before, after) for before in sinks for after in sources]
    return inner[0][0], inner[-1][1], edges
