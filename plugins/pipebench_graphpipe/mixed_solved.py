"""A chain solved for stages of many configurations, and what solves one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.mixed_configs import NEVER, Configs
from pipebench_graphpipe.mixed_tables import Table, Trees
from pipebench_graphpipe.space import Chain, Operators

StageOperators = Callable[[int], Operators]
"""The operators of a stage by the solution row that it ends before."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """What takes over from positions of a chain: needs (fronts,), and where it does: trees (positions,
    devices + 1), `here` of the same shape.
    """

    needs: IntArray
    here: IntArray
    trees: Trees

    def one(self, position: int) -> "Seeds":
        """Of one position."""
        return Seeds(self.needs, self.here[position : position + 1], self.trees[position : position + 1])

    def table(self) -> Table:
        """Needs of every front at every position."""
        needs = np.where(self.here[None] > 0, self.needs[:, None, None], NEVER)
        return Table(needs, np.broadcast_to(self.trees[None], needs.shape).copy())


@dataclass(frozen=True, slots=True, eq=False)
class MixedSolved:
    """A chain with its seeds, and needs by solution row."""

    chain: Chain
    seeds: Seeds
    table: Table


class MixedSolver(Protocol):
    """The DP as its parts see it. limits: for each configuration, (slots, choices)."""

    configs: Configs
    limits: list[IntArray]

    def solve(self, chain: Chain, seeds: Seeds) -> MixedSolved:
        """The chain with those seeds behind it."""

    def stage(
        self, solved: MixedSolved, config: int, row: int, ends: range, operators: StageOperators
    ) -> tuple[IntArray, Trees]:
        """Least samples of a stage of a configuration that ends before one of the rows, by devices."""
