"""The shortest cycle of a small directed graph."""

from collections.abc import Collection, Sequence


def shortest_cycle(successors: Sequence[Collection[int]]) -> list[int]:
    """The nodes of a shortest cycle in edge order, starting with its smallest; empty when there is none."""
    best: list[int] = []
    for start in sorted(_core(successors)):
        cycle = _back_to(successors, start, len(best))
        if cycle:
            best = cycle
        if len(best) == 1:
            break
    return best


def _core(successors: Sequence[Collection[int]]) -> set[int]:
    """Nodes that are left when those without predecessor are taken away again and again."""
    missing = [0] * len(successors)
    for after in successors:
        for node in after:
            missing[node] += 1
    ready = [node for node, count in enumerate(missing) if count == 0]
    left = set(range(len(successors)))
    while ready:
        node = ready.pop()
        left.discard(node)
        for successor in successors[node]:
            missing[successor] -= 1
            if missing[successor] == 0:
                ready.append(successor)
    return left


def _back_to(successors: Sequence[Collection[int]], start: int, below: int) -> list[int]:
    """A shortest path start -> … -> start, without the repeated end; empty if none is shorter than `below`."""
    before: dict[int, int] = {}
    frontier = [start]
    length = 0
    while frontier:
        length += 1
        if below and length >= below:
            return []
        reached: list[int] = []
        for node in frontier:
            for successor in sorted(successors[node]):
                if successor == start:
                    path = [node]
                    while path[-1] != start:
                        path.append(before[path[-1]])
                    return path[::-1]
                if successor not in before:
                    before[successor] = node
                    reached.append(successor)
        frontier = reached
    return []
