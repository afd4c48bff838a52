"""Is there a plan within the limits on each stage, and how deep is it? The DP over chains and forks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipebench_graphpipe.chain_dp import UNREACHED, Depths, extend, extend_chain, merge, side_by_side
from pipebench_graphpipe.space import PLAIN, Fork, Head, OperatorChain, Tail, left_out


@dataclass(frozen=True, slots=True, eq=False)
class ChainDepths:
    """A chain with the depth of each solution row, by the number of devices at most used.

    seeds: what stands behind the chain, shape (length + 1, devices + 1): the depth of a stage outside that takes
        the elements from that position on, with all that follows it. UNREACHED where there is none.
    reached: the depths.
    """

    chain: OperatorChain
    seeds: Depths
    reached: Depths

    def at(self, position: int) -> Depths:
        """Depths of the stages from an element on."""
        row: Depths = self.reached[self.chain.ends[position]]
        return row


class ChainSolver(Protocol):
    """The DP, as its parts use it.

    limits, replicas, devices: of the question.
    """

    limits: Depths
    replicas: Depths
    devices: int
    transitions: int

    def solve(self, chain: OperatorChain, seeds: Depths) -> ChainDepths:
        """Solve the chain with those seeds behind it."""


@dataclass(frozen=True, slots=True, eq=False)
class Closing:
    """A tail, with the depth behind every branch but the owner's.

    lead: depths of the owner's branch without its tail, with all that follows the fork, on the same devices, shape
        (devices + 1,). Without an owner the branch is empty.
    owner: the owner's branch, with its tail as seeds.
    """

    tail: Tail
    depth: int
    lead: Depths
    owner: ChainDepths | None


def closings(search: ChainSolver, solved: ChainDepths, position: int) -> Iterator[Closing]:
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


def tail_depths(search: ChainSolver, solved: ChainDepths, position: int, tail: Tail) -> Depths:
    """Depths of the stage that a tail starts, one row for each of its starts, shape (starts, devices + 1).

    For the plain tail these are depths of the stages behind the fork.
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
    """The seeds of a branch. There is none at its end, because a tail takes at least one element."""
    nothing = np.full((1, seeds.shape[1]), UNREACHED, np.int32)
    return np.concatenate((seeds, nothing))


class Feasibility:
    """One question of feasibility.

    limits: the largest depth at which each stage is allowed, shape (slots, replica choices).
    """

    def __init__(self, limits: Depths, replicas: tuple[int, ...], devices: int) -> None:
        self.limits = limits
        self.replicas = np.array(replicas, np.int32)
        self.devices = devices
        self.transitions = 0
        self.states = 0
        self._behind: dict[tuple[OperatorChain, int], ChainDepths] = {}
        self._others: dict[tuple[Fork, frozenset[int], int], Depths] = {}

    def behind(self, chain: OperatorChain, depth: int) -> ChainDepths:
        """Solve the chain in front of a stage of that depth (0: of no stage)."""
        key = (chain, depth)
        if key not in self._behind:
            seeds = np.full((chain.length + 1, self.devices + 1), UNREACHED, np.int32)
            seeds[-1] = depth
            self._behind[key] = self.solve(chain, seeds)
        return self._behind[key]

    def solve(self, chain: OperatorChain, seeds: Depths) -> ChainDepths:
        """Solve the chain with those seeds."""
        reached = np.full((chain.width, self.devices + 1), UNREACHED, np.int32)
        reached[chain.ends] = seeds
        solved = ChainDepths(chain, seeds, reached)
        high = chain.length
        for position in sorted(chain.forks, reverse=True):
            self._extend(solved, position + 1, high)
            for closing in closings(self, solved, position):
                self._open(solved, position, closing)
            high = position + 1
        self._extend(solved, 0, high)
        self.states += reached.size
        return solved

    def _extend(self, solved: ChainDepths, low: int, high: int) -> None:
        chain = solved.chain
        self.transitions += extend_chain(
            solved.reached, chain.ends, low, high, chain.rows, self.limits, self.replicas
        )

    def _open(self, solved: ChainDepths, position: int, closing: Closing) -> None:
        """Depths in front of a fork whose end is solved: without a stage that reaches in, or with one of its
        heads.
        """
        own = solved.chain.ends[position]
        fork = solved.chain.forks[position]
        np.minimum(solved.reached[own], self.plain(fork, closing), out=solved.reached[own])
        for head in fork.agreeing[closing.tail]:
            found = self.depths_behind(fork, closing, head)
            rows = solved.reached[head.end : head.end + len(found)]
            np.minimum(rows, found, out=rows)

    def plain(self, fork: Fork, closing: Closing) -> Depths:
        """Depths where no stage in front reaches into the fork, shape (devices + 1,)."""
        merged: Depths = merge(closing.lead[None], self.rest(fork, closing))[0]
        return merged

    def depths_behind(self, fork: Fork, closing: Closing, head: Head) -> Depths:
        """For each end of a head: depths of all that the head leaves, shape (ends, devices + 1)."""
        return merge(self.lead_behind(fork, closing, head), self.rest(fork, closing, head))

    def lead_behind(self, fork: Fork, closing: Closing, head: Head) -> Depths:
        """For each end of a head: depths of what it leaves of its own branch, with what the closing leads.

        The shape is (ends, devices + 1).
        """
        if head.owner is None:
            return closing.lead[None]
        if head.owner == closing.tail.owner:
            assert closing.owner is not None
            ends = closing.owner.chain.ends
            return closing.owner.reached[ends[1:-1]]
        branch = self.behind(fork.branches[head.owner].chain, closing.depth)
        return merge(branch.reached[branch.chain.ends[1:]], closing.lead)

    def rest(self, fork: Fork, closing: Closing, head: Head | None = None) -> Depths:
        """Depths of the branches that no stage outside takes, shape (devices + 1,)."""
        listed, _ = fork.others[left_out(closing.tail, head)]
        absorbed = closing.tail.absorbed + (head.absorbed if head else 0)
        row: Depths = self.others(fork, left_out(closing.tail, head), closing.depth)[len(listed) - absorbed]
        return row

    def others(self, fork: Fork, owners: frozenset[int], depth: int) -> Depths:
        """Depths of the heaviest branches without the owners, with `depth` behind them.

        The shape is (branches + 1, devices + 1).
        """
        key = (fork, owners, depth)
        if key not in self._others:
            listed, rows = fork.others[owners]
            alone = np.full((len(listed), self.devices + 1), UNREACHED, np.int32)
            for at, branch in enumerate(listed):
                alone[at] = self.behind(fork.branches[branch].chain, depth).at(0)
            self._others[key] = side_by_side(alone, depth, rows, self.limits, self.replicas)
        return self._others[key]
