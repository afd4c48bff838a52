"""How a fork may end: what stands behind it, which stage reaches in from there, and how deep that is."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.chain_dp import UNREACHED, Depths, extend
from pipebench_graphpipe.solved import ChainSolver, Solved
from pipebench_graphpipe.space import PLAIN, Tail


@dataclass(frozen=True, slots=True, eq=False)
class Closing:
    """A tail and the depth that the branches have behind them, except for the tail's owner.

    lead: depths of the owner's branch without its tail (of nothing, where there is no owner) with all that
    follows the fork on the same devices, (devices + 1,). owner: the owner's branch, its tail as seeds.
    """

    tail: Tail
    depth: int
    lead: Depths
    owner: Solved | None


def closings(search: ChainSolver, solved: Solved, position: int) -> Iterator[Closing]:
    """Every closing of the fork at a position whose following rows are solved, for each depth that occurs."""
    fork = solved.chain.forks[position]
    for tail in (PLAIN, *fork.tails):
        starts = tail_depths(search, solved, position, tail)
        for start in np.unique(starts[starts < UNREACHED]).tolist():
            depth = start if tail.joins else start - 1
            seeds = np.where(starts <= start, start, UNREACHED).astype(np.int32)
            if tail.owner is None:
                yield Closing(tail, depth, seeds[0], None)
            else:
                owner = search.solve(fork.branches[tail.owner].chain, _with_end(seeds))
                yield Closing(tail, depth, owner.at(0), owner)


def tail_depths(search: ChainSolver, solved: Solved, position: int, tail: Tail) -> Depths:
    """Depths of the stage that a tail starts, one row for each of its starts, (starts, devices + 1).

    The plain tail: of the stages behind the fork.
    """
    if tail is PLAIN:
        return solved.at(position + 1)[None]
    depths = np.full((len(tail.rows), search.devices + 1), UNREACHED, np.int32)
    for start, row in enumerate(tail.rows):
        search.transitions += extend(
            depths[start], solved.reached[: tail.last_end], tail.first_end, row, search.limits, search.replicas
        )
    return depths


def _with_end(seeds: Depths) -> Depths:
    """Seeds of a branch: its end itself is none, because a tail takes at least one element."""
    nothing = np.full((1, seeds.shape[1]), UNREACHED, np.int32)
    return np.concatenate((seeds, nothing))
