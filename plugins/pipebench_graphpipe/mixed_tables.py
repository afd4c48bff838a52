"""Needs by devices, each with the stages that lead to it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.mixed_configs import NEVER
from pipebench_graphpipe.space import Operators

Trees = NDArray[Any]
"""Objects: None for no stage, a MixedStage, a Renamed, or a pair of trees."""


@dataclass(frozen=True, slots=True)
class MixedStage:
    """A stage: its operators, slot, configuration and choice of replicas; samples in flight."""

    operators: Operators
    slot: int
    config: int
    choice: int
    samples: int


@dataclass(frozen=True, slots=True)
class Renamed:
    """Stages of one branch, for a branch that is alike: operators `theirs[i]` are `own[i]` here."""

    tree: object
    theirs: Operators
    own: Operators


@dataclass(slots=True)
class Table:
    """needs and trees of shape (fronts, rows, devices + 1), for at most so many devices."""

    needs: IntArray
    trees: Trees

    @classmethod
    def empty(cls, fronts: int, rows: int, width: int) -> "Table":
        """Nothing reached."""
        return cls(np.full((fronts, rows, width), NEVER, np.int64), np.full((fronts, rows, width), None, object))

    def row(self, number: int) -> "Table":
        """One row, (fronts, 1, devices + 1)."""
        return Table(self.needs[:, number : number + 1], self.trees[:, number : number + 1])

    def lower(self, row: int, other: "Table", at: int = 0) -> None:
        """Take over what is less in a row of another table."""
        better = other.needs[:, at] < self.needs[:, row]
        self.needs[:, row][better] = other.needs[:, at][better]
        self.trees[:, row][better] = other.trees[:, at][better]


def merged(one: Table, other: Table) -> Table:
    """Single rows side by side: the least larger need over all splits of the devices."""
    fronts, _, width = one.needs.shape
    found = Table.empty(fronts, 1, width)
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
            found.append(node if renamed is None else _renamed(node, renamed))
        elif isinstance(node, Renamed):
            own = node.own if renamed is None else [renamed.get(o, o) for o in node.own]
            todo.append((node.tree, {**(renamed or {}), **dict(zip(node.theirs, own, strict=True))}))
        elif isinstance(node, tuple):
            todo.extend((part, renamed) for part in node)
    return found


def _renamed(stage: MixedStage, names: dict[int, int]) -> MixedStage:
    operators = tuple(names.get(operator, operator) for operator in stage.operators)
    return MixedStage(operators, stage.slot, stage.config, stage.choice, stage.samples)


def renamed(table: Table, theirs: Operators, own: Operators) -> Table:
    """The table of a branch for one that is alike."""
    if theirs == own:
        return table
    trees = np.full(table.trees.shape, None, object)
    for index in np.argwhere(table.needs < NEVER):
        trees[tuple(index)] = Renamed(table.trees[tuple(index)], theirs, own)
    return Table(table.needs, trees)
