"""What comes after each node of a directed acyclic graph, as bit sets in Python integers."""

from collections.abc import Iterator, Sequence

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
