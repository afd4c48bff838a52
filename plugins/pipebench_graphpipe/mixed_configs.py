"""Stages with micro-batch sizes and k of their own: configurations, and what a chain needs of them by devices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.space import OperatorChain, Operators
from pipebench_graphpipe.stage_costs import StageCosts

NEVER = 1 << 40
"""Need where no stages fit."""


@dataclass(frozen=True, slots=True)
class Configs:
    """The configurations of a stage: a micro-batch size with a k each.

    costs: costs[c] are the tables at the micro-batch size of configuration c.
    k: k[c] is its kFkB.
    """

    costs: tuple[StageCosts, ...]
    k: tuple[int, ...]
    mini_batch: int

    @property
    def count(self) -> int:
        """Number of configurations C."""
        return len(self.k)

    @property
    def fronts(self) -> int:
        """Number of fronts."""
        return 2 * self.count + 1

    def nothing_behind(self) -> IntArray:
        """Needs of every front with no stage behind it, shape (fronts,)."""
        needs = np.full(self.fronts, NEVER, np.int64)
        for config, (costs, k) in enumerate(zip(self.costs, self.k, strict=True)):
            needs[config] = min(k * costs.micro_batch, self.mini_batch)
        needs[self.count] = 0
        return needs

    def needs(self, config: int, samples: IntArray) -> IntArray:
        """Needs of every front in front of stages of one configuration that keep `samples`, shape (fronts, …).

        It is the in-flight rule of algorithms.in_flight, one successor at a time.
        """
        size = self.costs[config].micro_batch
        found = np.full((self.fronts, *samples.shape), NEVER, np.int64)
        for front, (costs, k) in enumerate(zip(self.costs, self.k, strict=True)):
            own = costs.micro_batch
            wanted = samples + max(k * own, size) + max(0, own - size)
            found[front] = np.minimum(-(-wanted // own) * own, self.mini_batch)
        found[self.count] = found[self.count + 1 + config] = samples
        found[:, samples >= NEVER] = NEVER
        return found

    def limits(self, memory_bytes: int, sample_ns: float | None) -> list[IntArray]:
        """For each configuration the most samples that each stage may keep, shape (slots, choices); 0: none.

        sample_ns: limit on the time of a stage for each sample.
        """
        found = []
        for costs in self.costs:
            live = costs.most_live(memory_bytes).astype(np.int64)
            if sample_ns is not None:
                live[costs.period_ns > sample_ns * costs.micro_batch] = 0
            found.append(live * costs.micro_batch)
        return found


def all_configs(costs: Sequence[StageCosts], ks: Sequence[int], mini_batch: int) -> Configs:
    """Every size with every k."""
    pairs = [(each, k) for each in costs for k in ks]
    return Configs(tuple(each for each, _ in pairs), tuple(k for _, k in pairs), mini_batch)


Trees = NDArray[Any]
"""Objects: None for no stage, a MixedStage, a Renamed, or a pair of trees."""


@dataclass(frozen=True, slots=True)
class MixedStage:
    """A stage of a plan.

    slot: its number in the tables.
    config: its configuration.
    choice: its choice of replicas.
    samples: in flight.
    """

    operators: Operators
    slot: int
    config: int
    choice: int
    samples: int


@dataclass(frozen=True, slots=True)
class BranchStages:
    """Stages of one branch that are used for a branch of equal cost: operators `theirs[i]` there are `own[i]`
    here.
    """

    tree: object
    theirs: Operators
    own: Operators


@dataclass(slots=True)
class NeedTable:
    """Least needs, and the stages that have them, for at most so many devices.

    needs, trees: shape (fronts, rows, devices + 1).
    """

    needs: IntArray
    trees: Trees

    @classmethod
    def empty(cls, fronts: int, rows: int, width: int) -> "NeedTable":
        """A table in which nothing is reached."""
        return cls(np.full((fronts, rows, width), NEVER, np.int64), np.full((fronts, rows, width), None, object))

    def row(self, number: int) -> "NeedTable":
        """One row of the table, shape (fronts, 1, devices + 1)."""
        return NeedTable(self.needs[:, number : number + 1], self.trees[:, number : number + 1])

    def lower(self, row: int, other: "NeedTable", at: int = 0) -> None:
        """Take over the entries of another table's row that are less."""
        better = other.needs[:, at] < self.needs[:, row]
        self.needs[:, row][better] = other.needs[:, at][better]
        self.trees[:, row][better] = other.trees[:, at][better]


def merge_tables(one: NeedTable, other: NeedTable) -> NeedTable:
    """Two single rows side by side: the least larger need over all splits of the devices."""
    fronts, _, width = one.needs.shape
    found = NeedTable.empty(fronts, 1, width)
    for devices in range(width):
        larger = np.maximum(one.needs[:, 0, : devices + 1], other.needs[:, 0, devices::-1])
        best = larger.argmin(axis=1)
        for front in range(fronts):
            left = int(best[front])
            if larger[front, left] < NEVER:
                found.needs[front, 0, devices] = larger[front, left]
                found.trees[front, 0, devices] = (
                    one.trees[front, 0, left],
                    other.trees[front, 0, devices - left],
                )
    return found


def stages_of(tree: object, names: dict[int, int] | None = None) -> list[MixedStage]:
    """All stages of a tree."""
    found: list[MixedStage] = []
    todo: list[tuple[object, dict[int, int] | None]] = [(tree, names)]
    while todo:
        node, renamed = todo.pop()
        if isinstance(node, MixedStage):
            found.append(node if renamed is None else _rename_stage(node, renamed))
        elif isinstance(node, BranchStages):
            own = node.own if renamed is None else [renamed.get(o, o) for o in node.own]
            todo.append((node.tree, {**(renamed or {}), **dict(zip(node.theirs, own, strict=True))}))
        elif isinstance(node, tuple):
            todo.extend((part, renamed) for part in node)
    return found


def _rename_stage(stage: MixedStage, names: dict[int, int]) -> MixedStage:
    operators = tuple(names.get(operator, operator) for operator in stage.operators)
    return MixedStage(operators, stage.slot, stage.config, stage.choice, stage.samples)


def rename_operators(table: NeedTable, theirs: Operators, own: Operators) -> NeedTable:
    """The table of a branch, for another branch of equal cost."""
    if theirs == own:
        return table
    trees = np.full(table.trees.shape, None, object)
    for index in np.argwhere(table.needs < NEVER):
        trees[tuple(index)] = BranchStages(table.trees[tuple(index)], theirs, own)
    return NeedTable(table.needs, trees)


StageOperators = Callable[[int], Operators]
"""The operators of a stage by the solution row that it ends before."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Stages outside a chain that take over from some of its positions.

    needs: of every front in front of these stages, shape (fronts,).
    here: 1 where they can take over, shape (positions, devices + 1).
    trees: the stages, same shape.
    """

    needs: IntArray
    here: IntArray
    trees: Trees

    def one(self, position: int) -> "Seeds":
        """The seeds at one position."""
        return Seeds(self.needs, self.here[position : position + 1], self.trees[position : position + 1])

    def table(self) -> NeedTable:
        """Needs of every front at every position."""
        needs = np.where(self.here[None] > 0, self.needs[:, None, None], NEVER)
        return NeedTable(needs, np.broadcast_to(self.trees[None], needs.shape).copy())


@dataclass(frozen=True, slots=True, eq=False)
class ChainNeeds:
    """A chain with its seeds, and the needs by solution row."""

    chain: OperatorChain
    seeds: Seeds
    table: NeedTable


class ChainNeedsSolver(Protocol):
    """The DP, as its parts use it.

    limits: for each configuration, shape (slots, choices).
    """

    configs: Configs
    limits: list[IntArray]

    def solve(self, chain: OperatorChain, seeds: Seeds) -> ChainNeeds:
        """Solve the chain with those seeds behind it."""

    def stage(
        self, solved: ChainNeeds, config: int, row: int, ends: range, operators: StageOperators
    ) -> tuple[IntArray, Trees]:
        """The least samples of a stage of one configuration that ends before one of the rows, by devices."""
