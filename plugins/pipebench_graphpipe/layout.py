"""Solution rows of a chain, and which ways into its forks are offered."""

import numpy as np

from pipebench_graphpipe.ownership import head_choices, tail_choices
from pipebench_graphpipe.space import Chain, Head, Tail

LARGEST_TABLE = 200_000
"""Stages of one chain up to which owners are offered more ways to take whole branches along."""
LEVELS = (2, 1, 0)
"""What owners may take along (ownership._absorbed), the most first."""


def lay_out(chain: Chain) -> None:
    """Set the heads and tails of a chain's forks, its ends and its width; rows are left to the program."""
    for level in LEVELS:
        _lay_out(chain, level)
        if _starts(chain) * chain.width <= 2 * LARGEST_TABLE:
            break


def _lay_out(chain: Chain, level: int) -> None:
    width = 0
    ends = []
    for position in range(chain.length + 1):
        ends.append(width)
        width += 1
        if position not in chain.forks:
            continue
        fork = chain.forks[position]
        heads = []
        for owner, absorbed in head_choices(fork, level) if position > 0 else ():
            heads.append(Head(owner, absorbed, width, _pieces(chain, position, owner)))
            width += heads[-1].count
        fork.heads = tuple(heads)
    for position, fork in chain.forks.items():
        behind = ends[position + 1]
        fork.tails = tuple(
            Tail(owner, absorbed, joins, behind + joins, width if joins else behind + 1, [])
            for owner, absorbed, joins in tail_choices(fork, level, position == chain.length - 1)
        )
    chain.ends = np.array(ends, np.int64)
    chain.width = width


def _pieces(chain: Chain, position: int, owner: int | None) -> int:
    return 1 if owner is None else len(chain.forks[position].branches[owner].elements)


def _starts(chain: Chain) -> int:
    tails = (_pieces(chain, position, tail.owner) for position, fork in chain.forks.items() for tail in fork.tails)
    return chain.length + sum(tails)
