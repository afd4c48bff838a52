"""Coarsening and uncoarsening: neighbours are joined, then pieces move back (RaNNC, section III-B)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from pipebench.algorithms.blocks.quotient import Quotient, Tensors
from pipebench.algorithms.graph_orders import bit_set
from pipebench_rannc.atoms import AtomGroup, Atoms, GroupCosts

UNPROFILED = 200
"""released: while there are more groups than this, unions are taken to cost nothing."""
FEWEST = 5
"""released: with so few groups coarsening stops."""


@dataclass(frozen=True, slots=True)
class CoarseningRules:
    """When and how groups are joined.

    blocks: the number of groups at which coarsening stops.
    limit_bytes: memory of a device.
    released: choose as the released code does.
    """

    blocks: int
    limit_bytes: int
    released: bool = False


class Coarsening:
    """Groups of atoms and their costs while they are joined.

    members: the atoms of each group; a group goes by the number of one of its atoms.
    history: for each level, the pairs that were joined.
    """

    def __init__(self, quotient: Quotient, costs: GroupCosts, count: int) -> None:
        self.quotient = quotient
        self.costs = costs
        self.groups: dict[int, AtomGroup] = {atom: costs.atom(atom) for atom in range(count)}
        self.members: dict[int, list[int]] = {atom: [atom] for atom in range(count)}
        self.history: list[list[tuple[list[int], list[int]]]] = []
        self.rejected = 0

    def run(self, rules: CoarseningRules, check: Callable[[], None]) -> None:
        """Join groups level by level, until there are `blocks` groups or a level joins none."""
        while len(self.groups) > rules.blocks:
            check()
            if rules.released and len(self.groups) <= FEWEST:
                return
            joined = self._level(rules, check)
            if not joined:
                return
            self.history.append(joined)

    def _level(self, rules: CoarseningRules, check: Callable[[], None]) -> list[tuple[list[int], list[int]]]:
        times = {group: self.costs.time(made) for group, made in self.groups.items()}
        longest = fmean(times.values()) + 2 * pstdev(times.values()) if rules.released else float("inf")
        unprofiled = rules.released and len(self.groups) > UNPROFILED
        order = self.quotient.settle()
        reached = self.quotient.descendants(order)
        matched: set[int] = set()
        joined = []
        for turn, v in enumerate(
            sorted(self.groups, key=lambda group: (times[group], self.quotient.place[group]))
        ):
            if turn % 256 == 0:
                check()
            if v in matched or (unprofiled and times[v] > longest):
                continue
            for w in self._choices(v, times, rules.released, unprofiled, longest):
                if w in matched or (union := self._union(v, w, reached, rules.limit_bytes)) is None:
                    continue
                joined.append((self.members[v], self.members[w]))
                matched |= {v, w}
                reached[v] = reached[w] = reached[v] | reached[w]
                self._join(v, w, union)
                break
            if len(self.groups) == rules.blocks:
                break
        return joined

    def _choices(
        self, v: int, times: dict[int, int], released: bool, unprofiled: bool, longest: float
    ) -> Iterator[int]:
        """Neighbours of v in the order in which they are tried. Paper: the union of least time first."""
        after, before = self.quotient.after[v], self.quotient.before[v]
        if not released:
            near = {w for w in (*after, *before) if w in times}
            yield from sorted(near, key=lambda w: (self._time(v, w), self.quotient.place[w]))
            return
        gains = []
        for w, tensors in after.items():
            sent = sum(map(self.costs.communication, tensors))
            union = 0 if unprofiled else self._time(v, w)
            if (times[w] if unprofiled else union) <= longest:
                gains.append((times[v] + times[w] + sent - union, w))
        yield from (w for gain, w in sorted(gains, key=lambda each: -each[0]) if gain >= 0)

    def _time(self, v: int, w: int) -> int:
        one, other = self.groups[v], self.groups[w]
        if not one.shared & other.shared:
            return self.costs.time(one) + self.costs.time(other)
        return self.costs.time(self.costs.union((one, other)))

    def _union(self, v: int, w: int, reached: list[int], limit_bytes: int) -> AtomGroup | None:
        """The union, where it is convex and fits; else None.

        reached: descendants of each group when the level began; by now there may be more.
        """
        quotient = self.quotient
        first, second = (v, w) if quotient.place[v] < quotient.place[w] else (w, v)
        around = any(reached[group] >> second & 1 for group in quotient.after[first] if group != second)
        if around or quotient.between(first, second) is None:
            self.rejected += 1
            return None
        union = self.costs.union((self.groups[v], self.groups[w]))
        inside = {v, w}
        received, sent = (
            frozenset[int]().union(
                *(tensors for one in inside for group, tensors in ends[one].items() if group not in inside)
            )
            for ends in (quotient.before, quotient.after)
        )
        return union if self.costs.memory(union, received, sent) <= limit_bytes else None

    def _join(self, v: int, w: int, union: AtomGroup) -> None:
        kept = self.quotient.join(v, w)
        gone = w if kept == v else v
        self.members[kept] = self.members[v] + self.members[w]
        self.groups[kept] = union
        del self.groups[gone], self.members[gone]


Pairs = Sequence[tuple[list[int], list[int]]]


class BlockAssignment:
    """The block of each atom, and the number of atom edges from block to block."""

    def __init__(self, atoms: Atoms, block_of: list[int]) -> None:
        self.block_of = block_of
        self.blocks: dict[int, set[int]] = {}
        self._after = atoms.after
        self._before: list[dict[int, Tensors]] = [{} for _ in atoms.after]
        for atom, readers in enumerate(atoms.after):
            for reader, tensors in readers.items():
                self._before[reader][atom] = tensors
        self.ends: dict[int, tuple[int, tuple[int, ...]]] = _ends(atoms)
        self._touched: list[Tensors] = [
            frozenset[int]().union(*after.values(), *before.values())
            for after, before in zip(self._after, self._before, strict=True)
        ]
        self._edges: dict[int, dict[int, int]] = {}
        for atom, block in enumerate(block_of):
            self.blocks.setdefault(block, set()).add(atom)
            self._edges.setdefault(block, {})
        for atom, readers in enumerate(atoms.after):
            for reader in readers:
                self._count(block_of[atom], block_of[reader], 1)

    def _count(self, block: int, reader: int, amount: int) -> None:
        if block != reader:
            edges = self._edges[block]
            edges[reader] = edges.get(reader, 0) + amount
            if edges[reader] == 0:
                del edges[reader]

    def beside(self, piece: Iterable[int], block: int) -> list[int]:
        """Other blocks that exchange tensors with a piece of `block`, ascending."""
        found = {self.block_of[n] for a in piece for near in (self._after[a], self._before[a]) for n in near}
        return sorted(found - {block})

    def tensors(self, piece: Iterable[int]) -> Tensors:
        """The tensors that a piece makes or reads. `ends` has the maker of each tensor, and all its readers."""
        return frozenset[int]().union(*(self._touched[atom] for atom in piece))

    def move(self, piece: Iterable[int], target: int) -> None:
        """Put a piece into another block."""
        for atom in piece:
            source = self.block_of[atom]
            for near, outward in ((self._after[atom], True), (self._before[atom], False)):
                for other in near:
                    theirs = self.block_of[other]
                    for block, amount in ((source, -1), (target, 1)):
                        ends = (block, theirs) if outward else (theirs, block)
                        self._count(*ends, amount)
            self.block_of[atom] = target
            self.blocks[source].discard(atom)
            self.blocks[target].add(atom)

    def acyclic(self) -> bool:
        """Whether the blocks have a topological order: then each of them is convex."""
        position = {block: at for at, block in enumerate(self._edges)}
        before = [0] * len(position)
        for block, readers in self._edges.items():
            for reader in readers:
                before[position[reader]] |= 1 << position[block]
        left, waiting = bit_set(range(len(before))), list(range(len(before)))
        while waiting:
            free = [block for block in waiting if not before[block] & left]
            if not free:
                return False
            left &= ~bit_set(free)
            waiting = [block for block in waiting if left >> block & 1]
        return True


def _ends(atoms: Atoms) -> dict[int, tuple[int, tuple[int, ...]]]:
    readers: dict[int, tuple[int, list[int]]] = {}
    for atom, after in enumerate(atoms.after):
        for reader, tensors in after.items():
            for tensor in tensors:
                readers.setdefault(tensor, (atom, []))[1].append(reader)
    return {tensor: (maker, tuple(found)) for tensor, (maker, found) in readers.items()}


def uncoarsen(
    assignment: BlockAssignment,
    history: Sequence[Pairs],
    costs: GroupCosts,
    fits: Callable[[set[int]], bool],
    check: Callable[[], None],
) -> int:
    """Go back through the levels, from the last, and move pieces between blocks. Returns the number of moves.

    A piece moves when its block keeps another piece, and the messages of its tensors take less time in all.
    """
    moves = 0
    for pairs in reversed(history):
        check()
        for pair in pairs:
            moves += any(_move_piece(assignment, piece, costs, fits) for piece in pair)
    return moves


def _move_piece(
    assignment: BlockAssignment, piece: list[int], costs: GroupCosts, fits: Callable[[set[int]], bool]
) -> bool:
    source = assignment.block_of[piece[0]]
    if len(piece) == len(assignment.blocks[source]):
        return False
    near = assignment.beside(piece, source)
    if not near:
        return False
    tensors = assignment.tensors(piece)
    inside = set(piece)
    now = _sending(assignment, tensors, inside, source, costs)
    for _, target in sorted((_sending(assignment, tensors, inside, block, costs), block) for block in near):
        if _sending(assignment, tensors, inside, target, costs) >= now:
            return False
        if not fits(assignment.blocks[target] | inside):
            continue
        assignment.move(piece, target)
        if assignment.acyclic():
            return True
        assignment.move(piece, source)
    return False


def _sending(assignment: BlockAssignment, tensors: Tensors, piece: set[int], block: int, costs: GroupCosts) -> int:
    """Time in ns of all messages of these tensors, with the piece in `block`."""
    block_of, total = assignment.block_of, 0
    for tensor in tensors:
        maker, readers = assignment.ends[tensor]
        home = block if maker in piece else block_of[maker]
        targets = {block if reader in piece else block_of[reader] for reader in readers}
        total += costs.communication(tensor) * len(targets - {home})
    return total
