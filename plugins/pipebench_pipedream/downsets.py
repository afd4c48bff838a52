"""Downsets of a graph: all of them, or those that the released optimizer reaches."""

from collections import deque
from collections.abc import Sequence

from pipebench.algorithms.graph_orders import bit_set, descendants, members
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.topology import topological_order

Links = list[tuple[int, int]]
"""Positions of downsets, one in front of the other; those from any one after all those to it."""


def count_downsets(successors: Sequence[Sequence[int]], limit: int | None = None) -> int:
    """How many downsets there are, the empty one and the whole graph included.

    Counted without listing them: the counts of unconnected parts multiply, and a connected part splits at a
    node into downsets with it and without it. limit: parts to look at, at most.

    Raises UnsupportedProblem when the limit is passed.
    """
    after = descendants(successors)
    before = _predecessors(after)
    related = [down | up for down, up in zip(after, before, strict=True)]
    known: dict[int, int] = {0: 1}

    def count(nodes: int) -> int:
        if nodes not in known:
            if limit is not None and len(known) > limit:
                raise UnsupportedProblem(f"counting the downsets takes more than {limit} parts")
            part = _component(nodes, related)
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
    return linked_downsets(successors, limit)[0]


def linked_downsets(successors: Sequence[Sequence[int]], limit: int) -> tuple[list[int], Links]:
    """`list_downsets`, and the pairs of positions in it where the second holds one unit more than the first."""
    before = [0] * len(successors)
    for node, after in enumerate(successors):
        for successor in after:
            before[successor] |= 1 << node
    behind = {
        1 << node: [(1 << each, before[each]) for each in set(after)] for node, after in enumerate(successors)
    }
    level = {0: sum(1 << node for node, needed in enumerate(before) if not needed)}
    listed: list[int] = []
    links: Links = []
    grown_from: list[tuple[int, int]] = []
    while level:
        place = {downset: position for position, downset in enumerate(sorted(level), len(listed))}
        links += [(smaller, place[grown]) for smaller, grown in grown_from]
        listed += place
        if len(listed) > limit:
            raise UnsupportedProblem(f"the graph has more than {limit} downsets")
        larger: dict[int, int] = {}
        grown_from = []
        for downset, ready in level.items():
            smaller, left = place[downset], ready
            while left:
                unit = left & -left
                left ^= unit
                grown = downset | unit
                grown_from.append((smaller, grown))
                if grown not in larger:
                    fresh = ready ^ unit
                    for each, needed in behind[unit]:
                        if not needed & ~grown:
                            fresh |= each
                    larger[grown] = fresh
            if len(listed) + len(larger) > limit:
                raise UnsupportedProblem(f"the graph has more than {limit} downsets")
        level = larger
    return listed, links


def _balance(part: int, after: int, before: int) -> tuple[int, int]:
    """Prefer the pivot that leaves both halves small."""
    down, up = (part & after).bit_count(), (part & before).bit_count()
    return min(down, up), down + up


def _component(nodes: int, related: Sequence[int]) -> int:
    """The part of `nodes` that is connected with the lowest of them."""
    part = fresh = nodes & -nodes
    while fresh:
        found = 0
        for node in members(fresh):
            found |= related[node]
        fresh = found & nodes & ~part
        part |= fresh
    return part


def _predecessors(after: Sequence[int]) -> list[int]:
    before = [0] * len(after)
    for node, reached in enumerate(after):
        for successor in members(reached):
            before[successor] |= 1 << node
    return before


def reached_downsets(successors: Sequence[Sequence[int]], limit: int) -> tuple[list[int], Links]:
    """Downsets as bit sets, by size and then by value, and the pairs of positions in it that follow one another.

    An antichain moves on by one member, or by one ancestor of a member that feeds something else, to a successor s
    with nothing of these behind it. All that s depends on falls out of it, so it closes over s and that besides.

    Raises UnsupportedProblem when there are more than `limit`.
    """
    after = descendants(successors)
    before, moving, reached = _antichain_moves(successors)
    start = 1 << next(unit for unit in range(len(successors)) if not before[unit])
    antichains = {start: start}
    leads: dict[int, list[int]] = {}
    waiting = deque([start])
    while waiting:
        closed = waiting.popleft()
        antichain = antichains[closed]
        movers = next_units = 0
        for unit in members(antichain):
            movers |= moving[unit]
            next_units |= reached[unit]
        leads[closed] = []
        for unit in members(next_units & ~antichain):
            if after[unit] & movers:
                continue
            following = closed | before[unit] | 1 << unit
            leads[closed].append(following)
            if following not in antichains:
                if len(antichains) >= limit:
                    raise UnsupportedProblem(f"the graph has more than {limit} antichains", "use branches=joined")
                antichains[following] = antichain & ~before[unit] | 1 << unit
                waiting.append(following)
    ordered = sorted(leads, key=lambda closed: (closed.bit_count(), closed))
    place = {closed: position for position, closed in enumerate(ordered)}
    return ordered, [(place[closed], place[following]) for closed in ordered for following in leads[closed]]


def _antichain_moves(successors: Sequence[Sequence[int]]) -> tuple[list[int], list[int], list[int]]:
    """For each unit its ancestors; itself and those of them that feed others; and what all these feed outside.

    Others are neither the unit nor an ancestor of it. Who feeds none for a predecessor feeds none for the unit.
    """
    units = range(len(successors))
    readers = [bit_set(each) for each in successors]
    before, moving, reached = [0] * len(units), [0] * len(units), [0] * len(units)
    for unit in topological_order(successors, [f"unit {unit}" for unit in units]):
        inside = before[unit] | 1 << unit
        feeding, moving[unit] = moving[unit], 1 << unit
        for ancestor in members(feeding):
            if outside := readers[ancestor] & ~inside:
                moving[unit] |= 1 << ancestor
                reached[unit] |= outside
        reached[unit] |= readers[unit]
        for successor in successors[unit]:
            before[successor] |= inside
            moving[successor] |= moving[unit]
    return before, moving, reached
