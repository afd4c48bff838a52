"""The stage table: what the simulator needs of each stage, with times of the cost model or of a trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_in_turn
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import InvalidValue
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import TASK_KINDS


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """ns of tasks, to simulate with in place of the cost model's. A kind is a letter of TASK_KINDS.

    mean: by kind and stage, for every micro-batch.
    each: by kind, stage and micro-batch; goes before `mean` in a finite schedule. Both tasks of a pair last as
    long as the pair.
    """

    mean: Mapping[tuple[str, int], int] = field(default_factory=dict)
    each: Mapping[tuple[str, int, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageTable:
    """Columns of shape (stages,), unless noted.

    lanes: the device sets of the plan.
    turns: how many replicas take micro-batches in turn. A worker is a stage with a turn.
    worker: the first worker of each stage, with the number of workers at the end, shape (stages + 1,).
    lane: the number of each worker's set, shape (workers,).
    micro_batch: samples.
    count: number of micro-batches to simulate.
    offset: sum of the counts of the stages before, with the total at the end, shape (stages + 1,).
    duration: ns by kind of task (F, B, I, W, R), shape (5, stages).
    pipelines: number of pipelines of the plan, of equal length.
    overlap: the hidden share of the shorter task of a pair (Problem.overlap).
    """

    lanes: tuple[tuple[int, ...], ...]
    turns: IntArray
    worker: IntArray
    lane: IntArray
    micro_batch: IntArray
    count: IntArray
    offset: IntArray
    duration: IntArray
    pipelines: int
    overlap: float

    @property
    def slots(self) -> int:
        """Stages times their micro-batches."""
        return int(self.offset[-1])

    def worker_of(self, stage: IntArray, micro_batch: IntArray) -> IntArray:
        """The worker of each micro-batch of a stage; an all-reduce goes by the number of its turn."""
        workers: IntArray = self.worker[stage] + micro_batch % self.turns[stage]
        return workers

    def lane_of(self, stage: IntArray, micro_batch: IntArray) -> IntArray:
        """The number of the device set that runs each micro-batch of a stage."""
        lanes: IntArray = self.lane[self.worker_of(stage, micro_batch)]
        return lanes


def stage_table(model: CostModel, plan: Plan, samples: int, known: TaskTimes | None = None) -> StageTable:
    """The table for `samples` samples that pass through every stage.

    An I task lasts the backward without its weight-gradient part; the W task lasts that part.
    known: means that replace the times of the cost model.
    Raises InvalidValue when a micro-batch does not divide the samples, or stages share only some devices.
    """
    lanes, lane_of = lanes_in_turn(plan)
    turns = np.array([stage.turns for stage in plan.stages], np.int64)
    sizes = [stage.micro_batch for stage in plan.stages]
    for position, size in enumerate(sizes):
        if samples % size:
            raise InvalidValue(
                f"stage {position}: micro-batches of {size} samples do not divide {samples} samples",
                "choose a micro-batch that divides the mini-batch of one pipeline",
            )
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    duration = np.array(
        [
            [t.forward for t in times],
            [t.backward for t in times],
            [t.backward - t.weight_gradient for t in times],
            [t.weight_gradient for t in times],
            [t.all_reduce for t in times],
        ],
        np.int64,
    )
    for (kind, position), took in (known.mean if known else {}).items():
        duration[TASK_KINDS.index(kind), position] = took
    count = np.array([samples // size for size in sizes], np.int64)
    return StageTable(
        lanes=tuple(lanes),
        turns=turns,
        worker=np.concatenate([np.zeros(1, np.int64), np.cumsum(turns)]),
        lane=np.array([lane for each in lane_of for lane in each], np.int64),
        micro_batch=np.array(sizes, np.int64),
        count=count,
        offset=np.concatenate([np.zeros(1, np.int64), np.cumsum(count)]),
        duration=duration,
        pipelines=plan.pipelines,
        overlap=model.problem.overlap,
    )


def samples_of_pipeline(model: CostModel, plan: Plan) -> int:
    """Samples of a mini-batch that one pipeline of one copy computes.

    Raises InvalidValue when the pipelines of all copies do not divide the mini-batch.
    """
    mini_batch = model.problem.mini_batch
    if mini_batch % plan.all_pipelines:
        what = "copies of the pipeline" if plan.pipelines == 1 else "pipelines"
        raise InvalidValue(f"{plan.all_pipelines} {what} do not divide a mini-batch of {mini_batch} samples")
    return mini_batch // plan.all_pipelines
