"""Tasks as flat columns, lane after lane, with the position of each stage's and micro-batch's task."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pipebench.costs.placement import micro_batches_of
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import (
    ALL_REDUCE,
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    FiniteSchedule,
)

F, B, I, W, R = (ord(kind) for kind in (FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, ALL_REDUCE))  # noqa: E741


@dataclass(frozen=True)
class Tasks:
    """Columns of n tasks.

    lane_start: where each lane's tasks begin, shape (lanes + 1,).
    counts: number of micro-batches of each stage.
    together: tasks that run at the same time as the task behind them.

    A slot is the number of a stage and micro-batch: first_slot[stage] + micro_batch. The tables by slot are only
    meaningful once every task stands exactly once.
    """

    lane_start: IntArray
    stage: IntArray
    micro_batch: IntArray
    kind: IntArray
    counts: IntArray
    together: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @cached_property
    def pair_start(self) -> IntArray:
        """For each task the first task of its pair; the task itself where it is in no pair."""
        starts = np.arange(len(self.stage))
        starts[self.together + 1] = self.together
        return starts

    @cached_property
    def pair_end(self) -> IntArray:
        """For each task the last task of its pair; the task itself where it is in no pair."""
        ends = np.arange(len(self.stage))
        ends[self.together] = self.together + 1
        return ends

    @cached_property
    def last_release(self) -> IntArray:
        """For each stage the last task in its lane that frees activations."""
        last: IntArray = np.maximum.reduceat(self.release, self.first_slot[:-1])
        return last

    @cached_property
    def first_slot(self) -> IntArray:
        """The slot of micro-batch 0 of each stage, and the number of slots at the end."""
        return np.concatenate(([0], np.cumsum(self.counts)))

    @cached_property
    def slot(self) -> IntArray:
        """The slot of each task."""
        slots: IntArray = self.first_slot[self.stage] + self.micro_batch
        return slots

    @cached_property
    def lane(self) -> IntArray:
        """The lane of each task."""
        return np.repeat(np.arange(len(self.lane_start) - 1), np.diff(self.lane_start))

    @cached_property
    def forward(self) -> IntArray:
        """For each slot the task F."""
        return self._at(self.kind == F)

    @cached_property
    def gradient(self) -> IntArray:
        """For each slot the task whose end gives the gradient of the stage's inputs: B, or I when split."""
        return self._at((self.kind == B) | (self.kind == I))

    @cached_property
    def release(self) -> IntArray:
        """For each slot the task whose end frees the saved activations: B, or W when split."""
        return self._at((self.kind == B) | (self.kind == W))

    def _at(self, chosen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> IntArray:
        table = np.full(int(self.first_slot[-1]), -1, dtype=np.int64)
        positions = np.flatnonzero(chosen)
        table[self.slot[positions]] = positions
        return table

    def slots_of(self, stage: int, micro_batches: IntArray) -> IntArray:
        """Slots of some micro-batches of one stage."""
        slots: IntArray = self.first_slot[stage] + micro_batches
        return slots

    def pair_of(self, slot: int) -> tuple[int, int]:
        """The stage and micro-batch of a slot."""
        stage = int(np.searchsorted(self.first_slot, slot, side="right")) - 1
        return stage, slot - int(self.first_slot[stage])

    def name(self, task: int) -> str:
        """The name of a task in messages."""
        where = f"of stage {self.stage[task]}"
        if self.kind[task] == R:
            return f"{ALL_REDUCE} {where}"
        return f"{chr(self.kind[task])} {where}, micro-batch {self.micro_batch[task]}"


def micro_batch_counts(problem: Problem, plan: Plan) -> IntArray:
    """Number of micro-batches of each stage of one pipeline for one weight update, shape (stages,)."""
    return _column([micro_batches_of(problem, plan, stage) for stage in plan.stages])


def finite_tasks(problem: Problem, plan: Plan, schedule: FiniteSchedule) -> Tasks:
    """The columns of a finite schedule, as it stands."""
    lanes = schedule.lanes
    lane_start = np.cumsum([0, *(len(lane.stage) for lane in lanes)])
    return Tasks(
        lane_start=lane_start,
        stage=_column([s for lane in lanes for s in lane.stage]),
        micro_batch=_column([m for lane in lanes for m in lane.micro_batch]),
        kind=kind_codes("".join(lane.kinds for lane in lanes)),
        counts=micro_batch_counts(problem, plan),
        together=_column(
            [int(first) + i for lane, first in zip(lanes, lane_start, strict=False) for i in lane.together]
        ),
    )


def _column(numbers: list[int]) -> IntArray:
    """An array of whole numbers. Numbers beyond 64 bits can only be mistakes; they become the largest int64."""
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        largest = int(np.iinfo(np.int64).max)
        return np.array([max(-largest, min(number, largest)) for number in numbers], dtype=np.int64)


def kind_codes(kinds: str) -> IntArray:
    """The letters of a column of kinds as numbers."""
    return np.frombuffer(kinds.encode("ascii"), dtype=np.uint8).astype(np.int64)
