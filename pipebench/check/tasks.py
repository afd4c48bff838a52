"""Tasks with the row of each stage's and micro-batch's task, as the judge looks them up."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pipebench.costs.placement import micro_batches_of
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import B, F, I, Tasks, W, tasks_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule


@dataclass(frozen=True)
class IndexedTasks(Tasks):
    """Tasks with tables that find them.

    counts: micro-batches of each stage, shape (stages,). A slot numbers a stage with a micro-batch:
    first_slot[stage] + micro_batch. The tables are only meaningful once every task stands exactly once.
    turns: how many replicas of each stage take micro-batches in turn, shape (stages,). A worker is a stage with a
    turn: first_worker[stage] + micro_batch % turns.
    """

    counts: IntArray = field(kw_only=True)
    turns: IntArray = field(kw_only=True)

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
        """For each worker the last task in its lane that frees activations; -1 where it has none."""
        last = np.full(int(self.first_worker[-1]), -1, dtype=np.int64)
        np.maximum.at(last, self.worker[self.release], self.release)
        return last

    @cached_property
    def first_worker(self) -> IntArray:
        """The first worker of each stage, and the number of workers at the end."""
        return np.concatenate(([0], np.cumsum(self.turns)))

    @cached_property
    def worker(self) -> IntArray:
        """The worker of each task. An R is numbered by its turn."""
        workers: IntArray = self.first_worker[self.stage] + self.micro_batch % self.turns[self.stage]
        return workers

    def workers_of(self, stage: int) -> range:
        """The workers of a stage."""
        return range(int(self.first_worker[stage]), int(self.first_worker[stage + 1]))

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


def indexed(tasks: Tasks, plan: Plan, counts: IntArray) -> IndexedTasks:
    """The same tasks with their tables; counts: micro-batches of each stage of the plan."""
    return IndexedTasks(
        devices=tasks.devices,
        first=tasks.first,
        stage=tasks.stage,
        micro_batch=tasks.micro_batch,
        kind=tasks.kind,
        together=tasks.together,
        counts=counts,
        turns=np.array([stage.turns for stage in plan.stages], np.int64),
    )


def micro_batch_counts(problem: Problem, plan: Plan) -> IntArray:
    """Micro-batches of each stage for one weight update of one pipeline, shape (stages,)."""
    return np.array([micro_batches_of(problem, plan, stage) for stage in plan.stages], np.int64)


def finite_tasks(problem: Problem, plan: Plan, schedule: FiniteSchedule) -> IndexedTasks:
    """The tasks of a finite schedule, as it stands."""
    return indexed(tasks_of(schedule), plan, micro_batch_counts(problem, plan))
