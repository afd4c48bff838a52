"""The sets of operators of all stages in the space, as a program of additions to and removals from one set.

Stages that share a start differ by what is added to it, so each is one step away from another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipebench.costs.quantise import IntArray

NOT_A_STAGE = -1


class ProgramArrays(NamedTuple):
    """What the kernel reads.

    group_start, group_operators: operators of each group. step_group: the group to add, or -1 to remove the group
    added last; step_end: the solution row that the set then ends before, or -1. Row r adds the groups
    prelude[prelude_start[r]] …, is itself a stage if row_end[r] >= 0, and runs steps first[r] … last[r] - 1;
    its stage that ends before solution row e has slot row_slot[r] + e.
    """

    group_start: IntArray
    group_operators: IntArray
    step_group: IntArray
    step_end: IntArray
    prelude_start: IntArray
    prelude: IntArray
    row_end: IntArray
    first: IntArray
    last: IntArray
    row_slot: IntArray


@dataclass(slots=True)
class Program:
    """A program being written. slots: how many stages it has so far."""

    slots: int = 0
    _groups: list[tuple[int, ...]] = field(default_factory=list)
    _numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    _step_group: list[int] = field(default_factory=list)
    _step_end: list[int] = field(default_factory=list)
    _rows: list[tuple[list[int], int, int, int, int]] = field(default_factory=list)

    def _group(self, operators: tuple[int, ...]) -> int:
        if operators not in self._numbers:
            self._numbers[operators] = len(self._groups)
            self._groups.append(operators)
        return self._numbers[operators]

    @property
    def position(self) -> int:
        """Number of the next step."""
        return len(self._step_group)

    def add(self, operators: tuple[int, ...], end: int = NOT_A_STAGE) -> None:
        """A step that adds operators; with them the set is a stage that ends before solution row `end`."""
        self._step_group.append(self._group(operators))
        self._step_end.append(end)

    def remove(self, count: int) -> None:
        """Steps that remove what the last `count` steps added."""
        self._step_group += [-1] * count
        self._step_end += [NOT_A_STAGE] * count

    def row(self, prelude: Sequence[tuple[int, ...]], end: int, first: int, first_end: int, width: int) -> int:
        """A start: the prelude, then all steps from `first` to the present position. Returns its slot offset.

        end: where the prelude alone ends, or -1. first_end, width: the rows that its stages end before.
        """
        offset = self.slots - first_end
        self.slots += width - first_end
        self._rows.append(([self._group(group) for group in prelude], end, first, self.position, offset))
        return offset

    def arrays(self) -> ProgramArrays:
        """The finished program."""
        return ProgramArrays(
            group_start=_starts(self._groups),
            group_operators=_flat(self._groups),
            step_group=np.array(self._step_group, np.int64),
            step_end=np.array(self._step_end, np.int64),
            prelude_start=_starts([row[0] for row in self._rows]),
            prelude=_flat([row[0] for row in self._rows]),
            row_end=np.array([row[1] for row in self._rows], np.int64),
            first=np.array([row[2] for row in self._rows], np.int64),
            last=np.array([row[3] for row in self._rows], np.int64),
            row_slot=np.array([row[4] for row in self._rows], np.int64),
        )


def _starts(lists: Sequence[Sequence[int]]) -> IntArray:
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)


def _flat(lists: Sequence[Sequence[int]]) -> IntArray:
    return np.array([item for each in lists for item in each], np.int64)
