"""Uncoarsening: pieces move to the neighbouring block where that sends less (RaNNC, section III-B)."""

from collections.abc import Callable, Iterable, Sequence

from pipebench.algorithms.reachability import bit_set
from pipebench_rannc.atoms import Atoms
from pipebench_rannc.group_costs import GroupCosts
from pipebench_rannc.quotient import Tensors

Pairs = Sequence[tuple[list[int], list[int]]]


class Assignment:
    """Which block each atom is in, and how many atom edges lead from block to block."""

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
        """The tensors that a piece makes or reads; `ends` has the atom that makes each, and all readers."""
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
        """Whether the blocks can be put in an order: then each of them is convex."""
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
    assignment: Assignment,
    history: Sequence[Pairs],
    costs: GroupCosts,
    fits: Callable[[set[int]], bool],
    check: Callable[[], None],
) -> int:
    """Go back through the levels, from the last; the number of moves.

    A piece moves when its block keeps another one and all messages of its tensors together take less time.
    """
    moves = 0
    for pairs in reversed(history):
        check()
        for pair in pairs:
            moves += any(_moved(assignment, piece, costs, fits) for piece in pair)
    return moves


def _moved(assignment: Assignment, piece: list[int], costs: GroupCosts, fits: Callable[[set[int]], bool]) -> bool:
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


def _sending(assignment: Assignment, tensors: Tensors, piece: set[int], block: int, costs: GroupCosts) -> int:
    """Ns of all messages of these tensors with the piece in `block`."""
    block_of, total = assignment.block_of, 0
    for tensor in tensors:
        maker, readers = assignment.ends[tensor]
        home = block if maker in piece else block_of[maker]
        targets = {block if reader in piece else block_of[reader] for reader in readers}
        total += costs.communication(tensor) * len(targets - {home})
    return total
