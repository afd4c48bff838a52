"""Convex blocks of a graph, at most so many, balanced, with branches kept apart where they can be."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pipebench.algorithms.blocks.quotient import Quotient, Tensors

FINE = 8
"""Groups for each block that is wanted, before runs of groups are cut."""
ACROSS = 4
"""How much heavier a union across the end of a branch counts: branches stay apart while others are lighter."""
MOST_LOOKED_AT = 32
"""Neighbours of a group beyond which an edge is taken to leave a branch, without a look."""
SLACK = 1.1
"""Blocks may take so much more than the least largest one where that cuts fewer bytes."""
Block = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockLoads:
    """What blocks are balanced by and cut at.

    work: of each node, at least 0. held: bytes that each node keeps on its device. sent: bytes of each tensor.
    most_held: bytes that a block of several nodes may keep.
    attached: nodes that are no block by themselves (constants).
    """

    work: Sequence[int]
    held: Sequence[int]
    sent: Sequence[int]
    most_held: int
    attached: Sequence[int] = ()


def convex_blocks(after: Sequence[dict[int, Tensors]], loads: BlockLoads, blocks: int) -> list[Block]:
    """At most `blocks` sets of nodes, in an order in which each reads from earlier ones only.

    after: for each node its readers, with the tensors between. The same arguments give the same blocks.

    Two steps. Joins: neighbours are joined, the lightest union first, down to a few groups for each block. An edge
    is joined where no other path leads from its start to its end (RaNNC, section III-B: then the union is convex,
    and the graph of the groups stays acyclic); a union counts as heavier where it would make operators of one
    branch wait for another branch. Cuts: the groups in a depth-first topological order are runs without forks;
    consecutive groups of a topological order make a convex block, and blocks that follow one another in it have no
    cycle. The least largest block for the number is found by bisection (a group that is heavier stands alone);
    blocks a little heavier are taken where they cut fewer bytes. Where `most_held` leaves too many blocks it is
    given up. An attached node is joined first of all: with the first of its readers in a topological order, else
    with the last that it reads from, so that no other path leads from one to the other.
    """
    if blocks >= len(after):
        return [(node,) for node in Quotient(after).order]
    for most_held in (loads.most_held, sum(loads.held)):
        found = _blocks(after, replace(loads, most_held=most_held), blocks)
        if found is not None:
            return found
    raise AssertionError("without a limit on bytes there are always blocks")


def _blocks(after: Sequence[dict[int, Tensors]], loads: BlockLoads, blocks: int) -> list[Block] | None:
    joins = _Joins(after, loads)
    best: tuple[int, list[Block]] | None = None
    for groups in (FINE * blocks, FINE // 2 * blocks, FINE // 4 * blocks, blocks):
        joins.run(groups)
        found = _cut(joins, loads, blocks)
        if found is not None:
            heaviest = max(sum(loads.work[node] for node in block) for block in found)
            if best is None or heaviest < best[0]:
                best = heaviest, found
    if best is None:  # parts without edges between them: consecutive groups are joined, whatever they are
        return _cut(joins, loads, blocks, whole=True)
    return best[1]


class _Joins:
    """Groups while they are joined. members: the nodes of each; work, held: their sums."""

    def __init__(self, after: Sequence[dict[int, Tensors]], loads: BlockLoads) -> None:
        self.quotient = Quotient(after)
        self.members: dict[int, list[int]] = {node: [node] for node in range(len(after))}
        self.work, self.held = list(loads.work), list(loads.held)
        self._loads = loads
        self._first = list(range(len(after)))
        self._bytes = {
            (node, reader): sum(loads.sent[tensor] for tensor in tensors)
            for node, readers in enumerate(after)
            for reader, tensors in readers.items()
        }
        attached = frozenset(loads.attached)
        for node in sorted(attached, key=self.quotient.place.__getitem__, reverse=True):
            self._attach(self._group(node), attached)

    def _attach(self, node: int, attached: frozenset[int]) -> None:
        place = self.quotient.place
        readers, makers = self.quotient.after[node], self.quotient.before[node]
        if readers:
            self._join(node, min(readers, key=place.__getitem__))
        elif makers:
            self._join(node, max(makers, key=place.__getitem__))
        else:
            groups = (group for group, nodes in self.members.items() if not attached.issuperset(nodes))
            self._join(node, next(groups))

    def run(self, groups: int) -> None:
        """Join until there are so many groups, or none can be joined."""
        while len(self.members) > groups and self._sweep(groups):
            pass

    def _sweep(self, groups: int) -> bool:
        """Each edge once, the lightest union first; a weight that has grown since puts the edge back."""
        heap = [
            (self._weight(start, end), -self._edge_bytes(start, end), start, end)
            for start, readers in enumerate(self.quotient.after)
            for end in readers
        ]
        heapq.heapify(heap)
        before = len(self.members)
        while heap and len(self.members) > groups:
            weight, sent, start, end = heapq.heappop(heap)
            one, other = self._group(start), self._group(end)
            if one == other or other not in self.quotient.after[one]:
                continue
            now = self._weight(one, other)
            if now > weight:
                heapq.heappush(heap, (now, sent, one, other))
                continue
            if self.held[one] + self.held[other] > self._loads.most_held:
                continue
            if self.quotient.between(one, other) is not None:
                self._join(one, other)
        return len(self.members) < before

    def _edge_bytes(self, start: int, end: int) -> int:
        known = self._bytes.get((start, end))
        if known is None:
            known = sum(self._loads.sent[tensor] for tensor in self.quotient.after[start][end])
        return known

    def _weight(self, start: int, end: int) -> int:
        union = self.work[start] + self.work[end]
        return union if self._within_branch(start, end) else ACROSS * union

    def _within_branch(self, start: int, end: int) -> bool:
        """Whether the union makes nobody wait who did not before, as far as neighbours show it."""
        after, before = self.quotient.after, self.quotient.before
        readers, makers = after[start], before[end]
        if len(readers) > MOST_LOOKED_AT or len(makers) > MOST_LOOKED_AT:
            return False
        return all(reader == end or reader in after[end] for reader in readers) and all(
            maker == start or maker in before[start] for maker in makers
        )

    def _group(self, node: int) -> int:
        first = self._first
        while first[node] != node:
            first[node] = first[first[node]]
            node = first[node]
        return node

    def _join(self, one: int, other: int) -> None:
        kept = self.quotient.join(one, other)
        gone = other if kept == one else one
        self._first[gone] = kept
        self.members[kept] += self.members.pop(gone)
        self.work[kept] += self.work[gone]
        self.held[kept] += self.held[gone]


def _cut(joins: _Joins, loads: BlockLoads, blocks: int, whole: bool = False) -> list[Block] | None:
    """Runs of groups cut into at most so many blocks; None where that many do not do.

    whole: all groups are one run.
    """
    order = _depth_first(joins.quotient, sorted(joins.members))
    runs = [order] if whole else list(_runs(joins.quotient, order))
    if len(runs) > blocks:
        if len(order) > blocks:
            return None
        runs = [[group] for group in order]  # few enough as they are
    work, held = joins.work, joins.held

    def ends(run: Sequence[int], most: int) -> list[int]:
        """Ends of pieces filled from the front."""
        found: list[int] = []
        load = kept = 0
        for position, group in enumerate(run):
            load, kept = load + work[group], kept + held[group]
            if position and (load > most or kept > loads.most_held):
                if not found or found[-1] < position:
                    found.append(position)
                load, kept = work[group], held[group]
        return [*found, len(run)]

    low, high = 0, sum(loads.work)
    if sum(len(ends(run, high)) for run in runs) > blocks:
        return None
    while low < high:
        middle = (low + high) // 2
        if sum(len(ends(run, middle)) for run in runs) <= blocks:
            high = middle
        else:
            low = middle + 1
    made: list[Block] = []
    filled = [ends(run, low) for run in runs]
    pieces = _spread(
        [sum(work[group] for group in run) for run in runs], list(map(len, runs)), list(map(len, filled)), blocks
    )
    for run, bounds, count in zip(runs, filled, pieces, strict=True):
        even = len(run) > FINE * blocks  # groups without edges between them: any cut costs the same
        cuts = [0, *bounds] if even else _fewest_bytes(joins, loads, run, count, int(SLACK * low))
        for start, end in pairwise(cuts):
            made.append(tuple(sorted(node for group in run[start:end] for node in joins.members[group])))
    return made


def _spread(work: Sequence[int], lengths: Sequence[int], pieces: Sequence[int], blocks: int) -> list[int]:
    """Pieces of each run, where those that are left over go to the runs of the most work for each piece."""
    found = list(pieces)
    heap = [(-load / count, run) for run, (load, count) in enumerate(zip(work, pieces, strict=True))]
    heapq.heapify(heap)
    left = blocks - sum(pieces)
    while left and heap:
        _, run = heapq.heappop(heap)
        if found[run] < lengths[run]:
            found[run] += 1
            left -= 1
            heapq.heappush(heap, (-work[run] / found[run], run))
    return found


def _fewest_bytes(joins: _Joins, loads: BlockLoads, run: Sequence[int], pieces: int, most: int) -> list[int]:
    """Bounds of so many pieces, none above `most` unless it is one group, that cut the fewest bytes.

    Dynamic programming over the pieces so far and where the last one ends; ties: the more even ones.
    """
    work, held = joins.work, joins.held
    cost = _cut_bytes(joins.quotient, loads, run)
    best: list[dict[int, tuple[int, int, int]]] = [{0: (0, 0, 0)}]
    for _ in range(pieces):
        reached: dict[int, tuple[int, int, int]] = {}
        for start, (sent, squares, _) in best[-1].items():
            load = kept = 0
            for end in range(start + 1, len(run) + 1):
                load, kept = load + work[run[end - 1]], kept + held[run[end - 1]]
                if end > start + 1 and (load > most or kept > loads.most_held):
                    break
                value = sent + cost[end], squares + load * load, start
                if end not in reached or value < reached[end]:
                    reached[end] = value
        best.append(reached)
    bounds = [len(run)]
    for number in range(pieces, 0, -1):
        bounds.append(best[number][bounds[-1]][2])
    return bounds[::-1]


def _cut_bytes(quotient: Quotient, loads: BlockLoads, run: Sequence[int]) -> list[int]:
    """For each position of a run the bytes of its tensors that cross a cut in front of it; 0 at both ends."""
    place = {group: position for position, group in enumerate(run)}
    change = [0] * (len(run) + 2)
    for position, group in enumerate(run):
        last: dict[int, int] = {}
        for reader, tensors in quotient.after[group].items():
            for tensor in tensors:
                last[tensor] = max(last.get(tensor, 0), place.get(reader, 0))
        for tensor, reader in last.items():
            if reader > position:
                change[position + 1] += loads.sent[tensor]
                change[reader + 1] -= loads.sent[tensor]
    for position in range(1, len(change)):
        change[position] += change[position - 1]
    return [*change[: len(run)], 0]


def _depth_first(quotient: Quotient, groups: Sequence[int]) -> list[int]:
    """A topological order that follows a branch to its end before it begins the next."""
    waits = {group: len(quotient.before[group]) for group in groups}
    ready = [group for group in reversed(groups) if not waits[group]]
    order: list[int] = []
    while ready:
        group = ready.pop()
        order.append(group)
        for reader in sorted(quotient.after[group], reverse=True):
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    return order


def _runs(quotient: Quotient, order: Sequence[int]) -> Iterator[list[int]]:
    """The order in parts that can be cut anywhere without joining branches.

    Two groups that follow one another are of one run where one reads from the other, all that the second waits for
    comes before the first, and all that waits for the first comes behind the second.
    """
    number = {group: place for place, group in enumerate(order)}
    behind = [0] * len(order)
    ahead = [0] * len(order)
    for group in reversed(order):
        for reader in quotient.after[group]:
            behind[number[group]] |= behind[number[reader]] | 1 << number[reader]
    for group in order:
        for maker in quotient.before[group]:
            ahead[number[group]] |= ahead[number[maker]] | 1 << number[maker]
    run = [order[0]]
    for first, second in pairwise(order):
        in_line = second in quotient.after[first] and not any(
            reader != second and not behind[number[second]] >> number[reader] & 1
            for reader in quotient.after[first]
        )
        in_line = in_line and not any(
            maker != first and not ahead[number[first]] >> number[maker] & 1 for maker in quotient.before[second]
        )
        if in_line:
            run.append(second)
        else:
            yield run
            run = [second]
    yield run
