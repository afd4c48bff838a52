"""Downsets of a graph: sets of nodes that hold the predecessors of each of their nodes.

Planners that cut a graph by downsets (Piper) work on pairs of them, so their number says beforehand whether
such a search can end.
"""

from collections.abc import Sequence

from pipebench.algorithms.reachability import descendants, members
from pipebench.domain.errors import UnsupportedProblem


def count_downsets(successors: Sequence[Sequence[int]], limit: int | None = None) -> int:
    """How many downsets there are, the empty one and the whole graph included.

    Counted without listing them: the counts of unconnected parts multiply, and a connected part splits at a
    node into downsets with it and without it. limit: parts to look at, at most.

    Raises UnsupportedProblem when the limit is passed.
    """
    after = descendants(successors)
    before = _reversed(after)
    related = [down | up for down, up in zip(after, before, strict=True)]
    known: dict[int, int] = {0: 1}

    def count(nodes: int) -> int:
        if nodes not in known:
            if limit is not None and len(known) > limit:
                raise UnsupportedProblem(f"counting the downsets takes more than {limit} parts")
            part = _connected(nodes, related)
            if part != nodes:
                known[nodes] = count(part) * count(nodes & ~part)
            else:
                pivot = max(members(part), key=lambda node: _balance(part, after[node], before[node]))
                without = part & ~(after[pivot] | 1 << pivot)
                known[nodes] = count(without) + count(part & ~(before[pivot] | 1 << pivot))
        return known[nodes]

    return count((1 << len(successors)) - 1)


def list_downsets(successors: Sequence[Sequence[int]], limit: int) -> list[int]:
    """All downsets as bit sets, by size and then by value.

    Raises UnsupportedProblem when there are more than `limit`.
    """
    before = [0] * len(successors)
    for node, after in enumerate(successors):
        for successor in after:
            before[successor] |= 1 << node
    level = {0: sum(1 << node for node, needed in enumerate(before) if not needed)}
    listed: list[int] = []
    while level:
        listed += sorted(level)
        if len(listed) > limit:
            raise UnsupportedProblem(f"the graph has more than {limit} downsets")
        larger: dict[int, int] = {}
        for downset, ready in level.items():
            for node in members(ready):
                grown = downset | 1 << node
                if grown not in larger:
                    fresh = sum(1 << after for after in set(successors[node]) if not before[after] & ~grown)
                    larger[grown] = ready & ~(1 << node) | fresh
            if len(listed) + len(larger) > limit:
                raise UnsupportedProblem(f"the graph has more than {limit} downsets")
        level = larger
    return listed


def _balance(part: int, after: int, before: int) -> tuple[int, int]:
    """Prefer the pivot that leaves both halves small."""
    down, up = (part & after).bit_count(), (part & before).bit_count()
    return min(down, up), down + up


def _connected(nodes: int, related: Sequence[int]) -> int:
    """The part of `nodes` that is connected with the lowest of them."""
    part = fresh = nodes & -nodes
    while fresh:
        found = 0
        for node in members(fresh):
            found |= related[node]
        fresh = found & nodes & ~part
        part |= fresh
    return part


def _reversed(after: Sequence[int]) -> list[int]:
    before = [0] * len(after)
    for node, reached in enumerate(after):
        for successor in members(reached):
            before[successor] |= 1 << node
    return before
