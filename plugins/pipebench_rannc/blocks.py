"""Block-level partitioning: atoms to k balanced blocks in three steps (RaNNC, section III-B)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipebench.algorithms.blocks.quotient import Quotient, Tensors
from pipebench_rannc.atoms import AtomGroup, Atoms, GroupCosts
from pipebench_rannc.coarsening import BlockAssignment, Coarsening, CoarseningRules, uncoarsen

Block = list[int]


def compact(
    ordered: Sequence[Block],
    wanted: int,
    costs: GroupCosts,
    fits: Callable[[set[int]], bool],
    by_union: bool = False,
) -> list[Block]:
    """Join blocks, in the same order, until at most `wanted` are left or no pair fits in memory.

    The block of least time is joined with its left or right neighbour, whichever takes less time. With by_union it
    is the neighbour with which the union takes less, as in the released code. Consecutive blocks of a topological
    order always make a convex one. A block that fits with neither neighbour stays.
    """
    blocks = [list(block) for block in ordered]
    made = [costs.union([costs.atom(atom) for atom in block]) for block in blocks]
    stuck: set[int] = set()
    while len(blocks) > wanted:
        free = [at for at in range(len(blocks)) if id(blocks[at]) not in stuck]
        if not free:
            break
        at = min(free, key=lambda position: (costs.time(made[position]), position))
        beside = [near for near in (at - 1, at + 1) if 0 <= near < len(blocks)]
        for near in sorted(beside, key=lambda other: (_rank(made, at, other, costs, by_union), other)):
            left, right = min(at, near), max(at, near)
            if fits({*blocks[left], *blocks[right]}):
                blocks[left : right + 1] = [blocks[left] + blocks[right]]
                made[left : right + 1] = [costs.union((made[left], made[right]))]
                break
        else:
            stuck.add(id(blocks[at]))
    return blocks


def _rank(made: Sequence[AtomGroup], at: int, other: int, costs: GroupCosts, by_union: bool) -> int:
    return costs.time(costs.union((made[at], made[other])) if by_union else made[other])


@dataclass(frozen=True, slots=True)
class Recipe:
    """How blocks are made.

    blocks: k; 0 makes every atom a block.
    limit_bytes: memory of a device.
    released_coarsening: coarsen as the released code does.
    uncoarsening: whether pieces move back.
    by_union: choose the neighbour by the time of the union, as the released code does.
    """

    blocks: int
    limit_bytes: int
    released_coarsening: bool = False
    uncoarsening: bool = True
    by_union: bool = False


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks in topological order.

    members: for each block the positions of its atoms, ascending.
    counters: the work of the search.
    """

    atoms: Atoms
    members: tuple[tuple[int, ...], ...]
    counters: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def positions(self) -> list[list[int]]:
        """For each block, the positions of its operators in the graph, constants included."""
        atoms = self.atoms
        return [
            sorted({op for atom in block for op in (atoms.operators[atom], *atoms.constants[atom])})
            for block in self.members
        ]

    def operators(self, first: int, end: int) -> tuple[str, ...]:
        """Names of the operators of blocks first … end - 1, with clones of their constants."""
        return self.atoms.names([atom for block in self.members[first:end] for atom in block])


def partition(atoms: Atoms, costs: GroupCosts, recipe: Recipe, check: Callable[[], None]) -> Blocks:
    """Blocks that are convex, in an order in which each reads only from earlier ones.

    There are fewer than k where there are fewer atoms, and more where joined blocks would not fit a device.

    check: called now and then; raises when the time is over.
    """
    if recipe.blocks == 0 or recipe.blocks >= len(atoms):
        return Blocks(atoms, tuple((atom,) for atom in range(len(atoms))))
    coarsening = Coarsening(Quotient(atoms.after), costs, len(atoms))
    rules = CoarseningRules(recipe.blocks, recipe.limit_bytes, recipe.released_coarsening)
    coarsening.run(rules, check)
    block_of = [0] * len(atoms)
    for group, members in coarsening.members.items():
        for atom in members:
            block_of[atom] = group
    assignment = BlockAssignment(atoms, block_of)

    def fits(members: set[int]) -> bool:
        union = costs.union([costs.atom(atom) for atom in members])
        received, sent = crossing(atoms, members)
        return costs.memory(union, received, sent) <= recipe.limit_bytes

    moves = uncoarsen(assignment, coarsening.history, costs, fits, check) if recipe.uncoarsening else 0
    ordered = _in_order(atoms, assignment)
    coarse = len(ordered)
    if coarse > recipe.blocks:
        ordered = compact(ordered, recipe.blocks, costs, fits, recipe.by_union)
    counters = {
        "atoms": len(atoms),
        "levels": len(coarsening.history),
        "coarse_groups": coarse,
        "not_convex": coarsening.rejected,
        "moves": moves,
        "blocks": len(ordered),
    }
    return Blocks(atoms, tuple(tuple(sorted(block)) for block in ordered), counters)


def crossing(atoms: Atoms, members: set[int]) -> tuple[Tensors, Tensors]:
    """Tensors that a set of atoms receives and sends."""
    received: set[int] = set()
    sent: set[int] = set()
    graph = atoms.graph
    for atom in members:
        for reader, tensors in atoms.after[atom].items():
            if reader not in members:
                sent |= tensors
        for name in graph.operators[atoms.operators[atom]].inputs:
            tensor = graph.tensor_index[name]
            producer = graph.producers[tensor]
            if producer >= 0 and not graph.operators[producer].constant:
                received.add(tensor)
    made = {tensor for atom in members for tensor in graph.outputs[atoms.operators[atom]]}
    return frozenset(received - made), frozenset(sent)


def _in_order(atoms: Atoms, assignment: BlockAssignment) -> list[list[int]]:
    number = {block: at for at, block in enumerate(b for b, members in assignment.blocks.items() if members)}
    after: list[dict[int, set[int]]] = [{} for _ in number]
    for atom, readers in enumerate(atoms.after):
        mine = number[assignment.block_of[atom]]
        for reader, tensors in readers.items():
            theirs = number[assignment.block_of[reader]]
            if mine != theirs:
                after[mine].setdefault(theirs, set()).update(tensors)
    quotient = Quotient([{reader: frozenset(tensors) for reader, tensors in each.items()} for each in after])
    members = [sorted(assignment.blocks[block]) for block in number]
    return [members[block] for block in quotient.order]
