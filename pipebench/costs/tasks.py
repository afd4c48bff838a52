"""The tasks of a schedule as flat columns, one row a task: what the judge and the simulator both read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.domain.schedule import ALL_REDUCE, TASK_KINDS, FiniteSchedule

F, B, I, W, R = range(len(TASK_KINDS))  # noqa: E741
"""How columns code the kind of a task: by its position in TASK_KINDS."""
_LETTERS = np.frombuffer(TASK_KINDS.encode(), np.uint8)
_CODES = np.full(256, -1, np.int64)
_CODES[_LETTERS] = np.arange(len(TASK_KINDS))


@dataclass(frozen=True)
class Tasks:
    """Columns of shape (tasks,), except as noted; lane after lane, each lane in its order.

    devices: those of each lane. first: the first row of each lane, with the number of rows at the end, shape
    (lanes + 1,). stage, micro_batch: as the schedule names them, which may be wrong. kind: one of F, B, I, W, R.
    together: rows that run at the same time as the row behind them, shape (pairs,).
    """

    devices: tuple[tuple[int, ...], ...]
    first: IntArray
    stage: IntArray
    micro_batch: IntArray
    kind: IntArray
    together: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    @cached_property
    def lane(self) -> IntArray:
        """The lane of each row."""
        return np.repeat(np.arange(len(self.devices)), np.diff(self.first))

    def name(self, row: int) -> str:
        """How messages call a task."""
        return task_name(TASK_KINDS[self.kind[row]], int(self.stage[row]), int(self.micro_batch[row]))


def tasks_of(schedule: FiniteSchedule) -> Tasks:
    """The tasks of a finite schedule, as they stand: nothing is refused.

    Numbers beyond 64 bits, which can only be mistakes, become the largest that an array holds.
    """
    lanes = schedule.lanes
    first = first_rows([len(lane.kinds) for lane in lanes])
    rows = int(first[-1])
    pairs = [int(start) + i for start, lane in zip(first, lanes, strict=False) for i in lane.together]
    return Tasks(
        devices=tuple(lane.devices for lane in lanes),
        first=first,
        stage=_joined([lane.stage for lane in lanes], rows),
        micro_batch=_joined([lane.micro_batch for lane in lanes], rows),
        kind=kind_codes("".join(lane.kinds for lane in lanes)),
        together=np.array(pairs, np.int64),
    )


def first_rows(sizes: Sequence[int] | IntArray) -> IntArray:
    """The first row of each lane, with the number of rows at the end; sizes: tasks of each lane."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def kind_codes(letters: str) -> IntArray:
    """The codes of kinds that are given by their letters."""
    return _CODES[np.frombuffer(letters.encode(), np.uint8)]


def kind_letters(codes: IntArray) -> str:
    """The letters of kinds that are given by their codes."""
    return _LETTERS[codes].tobytes().decode()


def task_name(kind: str, stage: int, micro_batch: int) -> str:
    """How messages call a task. R, which is one for all micro-batches, goes by its stage."""
    of_stage = f"{kind} of stage {stage}"
    return of_stage if kind == ALL_REDUCE and micro_batch == 0 else f"{of_stage}, micro-batch {micro_batch}"


def _joined(parts: Sequence[tuple[int, ...]], rows: int) -> IntArray:
    try:
        return np.fromiter(chain.from_iterable(parts), np.int64, rows)
    except OverflowError:
        most = int(np.iinfo(np.int64).max)
        numbers = (max(-most, min(number, most)) for number in chain.from_iterable(parts))
        return np.fromiter(numbers, np.int64, rows)
