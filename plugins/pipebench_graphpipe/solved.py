"""A solved chain, and what solves one."""

from dataclasses import dataclass
from typing import Protocol

from pipebench.algorithms.chain_dp import Depths
from pipebench_graphpipe.space import Chain


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A chain and, for each of its solution rows and number of devices at most used, the depth.

    seeds: what stands behind the chain, (length + 1, devices + 1): the depth of a stage outside that takes the
    elements from that position on, and all that follows it; UNREACHED where there is none.
    """

    chain: Chain
    seeds: Depths
    reached: Depths

    def at(self, position: int) -> Depths:
        """Depths of the stages from an element on."""
        row: Depths = self.reached[self.chain.ends[position]]
        return row


class ChainSolver(Protocol):
    """The DP as its parts see it. limits, replicas, devices: of the question that is asked."""

    limits: Depths
    replicas: Depths
    devices: int
    transitions: int

    def solve(self, chain: Chain, seeds: Depths) -> Solved:
        """The chain with those seeds behind it."""
