"""Compaction: neighbours in the topological order are joined until there are k blocks (RaNNC, section III-B)."""

from collections.abc import Callable, Sequence

from pipebench_rannc.group_costs import Group, GroupCosts

Block = list[int]


def compact(
    ordered: Sequence[Block],
    wanted: int,
    costs: GroupCosts,
    fits: Callable[[set[int]], bool],
    by_union: bool = False,
) -> list[Block]:
    """At most `wanted` blocks where memory allows it, in the same order.

    The block that takes least time is joined with the one beside it, left or right, that takes less; by_union:
    with which it takes less together, as the released code has it. Consecutive blocks of a topological order
    always make a convex one. A block that fits with neither neighbour stays.
    """
    blocks = [list(block) for block in ordered]
    made = [costs.joined([costs.atom(atom) for atom in block]) for block in blocks]
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
                made[left : right + 1] = [costs.joined((made[left], made[right]))]
                break
        else:
            stuck.add(id(blocks[at]))
    return blocks


def _rank(made: Sequence[Group], at: int, other: int, costs: GroupCosts, by_union: bool) -> int:
    return costs.time(costs.joined((made[at], made[other])) if by_union else made[other])
