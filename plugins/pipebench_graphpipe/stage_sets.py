"""Operators of a stage, from where it starts and ends."""

from collections.abc import Iterable

import numpy as np

from pipebench_graphpipe.space import Chain, Fork, Head, Operators, Tail, absorbed_branches


def stage_operators(chain: Chain, first: int, end: int) -> Operators:
    """Of a stage that starts before element `first` and ends before a solution row."""
    position = position_of(chain, end)
    operators = [o for element in chain.elements[first:position] for o in element]
    if chain.ends[position] != end:
        fork = chain.forks[position]
        head, at = head_of(fork, end)
        operators += whole(fork, absorbed_branches(fork, head))
        if head.owner is not None:
            operators += [o for element in fork.branches[head.owner].elements[: at + 1] for o in element]
    return tuple(operators)


def tail_operators(chain: Chain, position: int, tail: Tail, start: int, end: int) -> Operators:
    """Of a stage that starts in the fork at a position, with the tail's start, and ends before a solution row."""
    fork = chain.forks[position]
    operators = list(whole(fork, absorbed_branches(fork, tail)))
    if tail.owner is not None:
        operators += [o for element in fork.branches[tail.owner].elements[start:] for o in element]
    return (*operators, *stage_operators(chain, position + 1, end))


def whole(fork: Fork, branches: Iterable[int]) -> Operators:
    """Of whole branches."""
    return tuple(operator for branch in branches for operator in fork.branches[branch].operators)


def position_of(chain: Chain, end: int) -> int:
    """The position whose rows hold a solution row."""
    return int(np.searchsorted(chain.ends, end, side="right")) - 1


def head_of(fork: Fork, end: int) -> tuple[Head, int]:
    """The head that a solution row belongs to, and which of its ends it is."""
    head = next(head for head in fork.heads if head.end <= end < head.end + head.count)
    return head, end - head.end
