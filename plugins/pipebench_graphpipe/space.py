"""The stages that the search may choose from: a compiled tree of chains and forks."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pipebench.costs.quantise import IntArray

Operators = tuple[int, ...]


@dataclass(slots=True, eq=False)
class OperatorChain:
    """A chain of elements, some of which are forks.

    elements: operators of each element.
    forks: by position.
    ends: ends[i] is the solution row of the stages from element i on, i = 0 … length. The rows behind that of a
        fork belong to its heads.
    width: number of rows.
    rows: a stage from element i that ends before solution row e has slot rows[i] + e.
    """

    elements: tuple[Operators, ...]
    forks: "dict[int, Fork]"
    ends: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    width: int = 0

    @property
    def length(self) -> int:
        """Number of elements."""
        return len(self.elements)

    @property
    def operators(self) -> Operators:
        """All of them, element by element."""
        return tuple(operator for element in self.elements for operator in element)


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One branch of a fork.

    elements: its operators, element by element.
    operators: all of them in that order.
    work: by which branches are ordered.
    chain: that of the first branch of equal structure and cost.
    alike: its number among these branches, from 1.
    """

    elements: tuple[Operators, ...]
    operators: Operators
    work: float
    chain: OperatorChain
    alike: int


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """How a stage that continues behind a fork may start in it.

    owner: the branch whose last elements it takes (a row for each first element), or none (one row).
    absorbed: how many of the lightest other branches it takes whole.
    joins: whether it continues behind the fork, so that the other branches lead to it.
    rows: its stage from row k that ends before solution row e has slot rows[k] + e, first_end <= e < last_end.
    """

    owner: int | None
    absorbed: int
    joins: bool
    first_end: int
    last_end: int
    rows: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """How a stage that starts before a fork may end in it.

    owner: the branch whose first elements it takes (an end for each last element), or none (one end).
    absorbed: as in Tail.
    end: the solution row of the first of its `count` ends.
    """

    owner: int | None
    absorbed: int
    end: int
    count: int


PLAIN = Tail(None, 0, True, 0, 0, [])
"""No stage behind the fork starts inside it. Not among a fork's tails."""


@dataclass(slots=True, eq=False)
class Fork:
    """Branches, heaviest first, and the tails and heads that stages may have in it.

    agreeing: for each tail, PLAIN too, the heads that go with it.
    others: for each set of owners, the remaining branches in order, and slots of runs of them as one stage:
        branches a … e - 1 of that list have slot rows[a] + e.
    """

    branches: tuple[Branch, ...]
    tails: tuple[Tail, ...] = ()
    heads: tuple[Head, ...] = ()
    agreeing: dict[Tail, tuple[Head, ...]] = field(default_factory=dict)
    others: dict[frozenset[int], tuple[tuple[int, ...], IntArray]] = field(default_factory=dict)


def left_out(tail: Tail, head: Head | None = None) -> frozenset[int]:
    """The branches that stages outside take in part."""
    owners = {tail.owner} | ({head.owner} if head else set())
    return frozenset(owner for owner in owners if owner is not None)


def absorbed_branches(fork: Fork, option: Tail | Head) -> tuple[int, ...]:
    """Positions of the branches that a tail or head takes whole."""
    listed = [branch for branch in range(len(fork.branches)) if branch != option.owner]
    return tuple(listed[len(listed) - option.absorbed :])


def agree(fork: Fork, tail: Tail, head: Head) -> bool:
    """Whether a tail and a head go together: they take different branches, or parts of one.

    Whole branches are absorbed at one end only, so that those left are always the heaviest.
    """
    if tail.absorbed and head.absorbed:
        return False
    whole = absorbed_branches(fork, tail) + absorbed_branches(fork, head)
    return tail.owner not in whole and head.owner not in whole


def stage_operators(chain: OperatorChain, first: int, end: int) -> Operators:
    """Operators of a stage from element `first` to a solution row."""
    position = position_of(chain, end)
    operators = [o for element in chain.elements[first:position] for o in element]
    if chain.ends[position] != end:
        fork = chain.forks[position]
        head, at = head_of(fork, end)
        operators += whole(fork, absorbed_branches(fork, head))
        if head.owner is not None:
            operators += [o for element in fork.branches[head.owner].elements[: at + 1] for o in element]
    return tuple(operators)


def tail_operators(chain: OperatorChain, position: int, tail: Tail, start: int, end: int) -> Operators:
    """Operators of a stage that starts with a tail in the fork at a position and ends before a solution row."""
    fork = chain.forks[position]
    operators = list(whole(fork, absorbed_branches(fork, tail)))
    if tail.owner is not None:
        operators += [o for element in fork.branches[tail.owner].elements[start:] for o in element]
    return (*operators, *stage_operators(chain, position + 1, end))


def whole(fork: Fork, branches: Iterable[int]) -> Operators:
    """Operators of whole branches."""
    return tuple(operator for branch in branches for operator in fork.branches[branch].operators)


def position_of(chain: OperatorChain, end: int) -> int:
    """The position to whose rows a solution row belongs."""
    return int(np.searchsorted(chain.ends, end, side="right")) - 1


def head_of(fork: Fork, end: int) -> tuple[Head, int]:
    """The head to which a solution row belongs, and the number of its end."""
    head = next(head for head in fork.heads if head.end <= end < head.end + head.count)
    return head, end - head.end
