"""The task table: a row for each task, each lane in its static order; and the schedules that it refuses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipebench.costs.formula import Formula
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import B, F, I, R, Tasks, W, task_name
from pipebench.domain.errors import PipebenchError
from pipebench.domain.schedule import TASK_KINDS
from pipebench.simulation.stages import StageTable, TaskTimes


class InvalidSchedule(PipebenchError):
    """The schedule does not fit its plan: a task is missing, doubled, or on devices that do not hold its stage."""


class Deadlock(PipebenchError):
    """No task can start any more.

    lanes: the devices of the lanes in one cycle of waits. heads: the task at which each of them stands, as
    (kind, stage, micro-batch).
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        lanes: tuple[tuple[int, ...], ...] = (),
        heads: tuple[tuple[str, int, int], ...] = (),
    ) -> None:
        super().__init__(message, hint)
        self.lanes = lanes
        self.heads = heads


@dataclass(frozen=True, slots=True)
class TaskTable:
    """The rows with what the kernel needs of each.

    lane: lane of each row.
    duration: ns of each row; the rows of a pair last as long as the pair.
    next: the row on the same lane that always waits for this one (F: its backward; I: its W; the last part of a
    backward: the stage's R), or -1. With several pipelines or replicas in turn the last part of a backward has
    -2 - g instead.
    followers: for -2 - g the R rows followers[g], where g is the position in the pipeline; shape (stages of a
    pipeline, most workers of one), -1 for no R.
    slot_row: by stage and micro-batch (StageTable.offset) the row of its F, then from StageTable.slots on that of
    its B or I.
    arrival: the same, but the first row of a pair for both of its rows, because it waits for the inputs of both.
    waits: how many inputs other than messages each row waits for.
    """

    columns: Tasks
    lane: IntArray
    duration: IntArray
    next: IntArray
    slot_row: IntArray
    arrival: IntArray
    followers: IntArray
    waits: IntArray

    def awaiting(self, row: int) -> IntArray:
        """The rows that `row` always waits for, without messages."""
        groups = np.flatnonzero((self.followers == row).any(axis=1))
        return np.flatnonzero((self.next == row) | np.isin(self.next, -2 - groups))


def task_table(columns: Tasks, stages: StageTable, known: TaskTimes | None = None) -> TaskTable:
    """The table of these rows.

    Every micro-batch of every stage needs one F, and either one B or one I and one W. A stage with an all-reduce
    needs one R.
    Raises InvalidSchedule that names the first task that is missing, repeated, unknown, or on a lane of other
    devices.
    """
    lane = columns.lane
    _check_names(columns, stages, lane)
    slots = stages.slots
    # An R is numbered by its turn, and there may be more turns than micro-batches.
    slot = stages.offset[columns.stage] + np.where(columns.kind == R, 0, columns.micro_batch)
    row_of = _row_of(columns, stages, slot)
    _check_complete(stages, row_of)
    rows = np.arange(len(slot))
    forward, whole, upstream, weight = (row_of[kind * slots : (kind + 1) * slots] for kind in range(4))
    reduce_row = row_of[4 * slots :]
    backward = np.where(whole >= 0, whole, upstream)
    kind, stage = columns.kind, columns.stage
    followers = _followers(stages, reduce_row)
    alone = stages.pipelines == 1 and len(stages.lane) == len(stages.count)
    reduces = reduce_row if alone else -2 - np.arange(len(stages.count)) % len(followers)
    after = np.where(kind == F, backward[slot], np.where(kind == I, weight[slot], reduces[stage]))
    after[kind == R] = -1
    first = columns.together
    pair_start = np.append(rows, -1)  # the last one is for no row
    pair_start[first + 1] = first
    after = np.where(after >= 0, pair_start[after], after)
    slot_row = np.concatenate([forward, backward])
    return TaskTable(
        columns=columns,
        lane=lane,
        duration=task_durations(columns, stages, known),
        next=after,
        slot_row=slot_row,
        arrival=pair_start[slot_row],
        followers=followers,
        waits=_waits(after, followers),
    )


def task_durations(columns: Tasks, stages: StageTable, known: TaskTimes | None = None) -> IntArray:
    """ns of each row; both rows of a pair last as long as the pair.

    known: times of single tasks that replace those of their stage.
    """
    duration = stages.duration[columns.kind, columns.stage]
    first, second = columns.together, columns.together + 1
    duration[first] = duration[second] = Formula.pair_ns(duration[first], duration[second], stages.overlap)
    if known is not None and known.each:
        kinds = [TASK_KINDS[kind] for kind in columns.kind.tolist()]
        keys = zip(kinds, columns.stage.tolist(), columns.micro_batch.tolist(), strict=True)
        duration = np.array(
            [known.each.get(key, took) for key, took in zip(keys, duration.tolist(), strict=True)], np.int64
        )
        duration[first] = duration[second] = np.maximum(duration[first], duration[second])
    return duration


def _followers(stages: StageTable, reduce_row: IntArray) -> IntArray:
    """For each position in a pipeline the R rows of all workers that stand there. reduce_row: by worker."""
    length = len(stages.count) // stages.pipelines
    place = np.repeat(np.arange(len(stages.count)) % length, stages.turns)
    found = [reduce_row[place == position] for position in range(length)]
    table = np.full((length, max(map(len, found))), -1, np.int64)
    for position, rows in enumerate(found):
        table[position, : len(rows)] = rows
    return table


def _waits(after: IntArray, followers: IntArray) -> IntArray:
    """How many rows name each row as the one that waits for them, by TaskTable.next."""
    waits = np.bincount(after[after >= 0], minlength=len(after)).astype(np.int64)
    several = np.bincount(-2 - after[after < -1], minlength=len(followers))
    for group, rows in enumerate(followers.tolist()):
        for row in rows if several[group] else ():
            waits[row] += several[group] if row >= 0 else 0
    return waits


def _check_names(columns: Tasks, stages: StageTable, lane: IntArray) -> None:
    known = (columns.stage >= 0) & (columns.stage < len(stages.count))
    _refuse(columns, ~known, "names a stage that the plan does not have")
    most = np.where(columns.kind == R, stages.turns[columns.stage], stages.count[columns.stage])
    numbered = (columns.micro_batch >= 0) & (columns.micro_batch < most)
    _refuse(columns, ~numbered, "names a micro-batch that the stage does not have")
    sets = [tuple(sorted(devices)) for devices in columns.devices]
    numbers = {devices: number for number, devices in enumerate(stages.lanes)}
    set_of = np.array([numbers.get(devices, -1) for devices in sets], np.int64)
    if len(set(sets)) < len(sets):
        raise InvalidSchedule("two lanes of the schedule have the same devices")
    expected = stages.lane_of(columns.stage, columns.micro_batch)
    _refuse(columns, set_of[lane] != expected, "is on a lane of other devices than its stage")


def _row_of(columns: Tasks, stages: StageTable, slot: IntArray) -> IntArray:
    """The row of each task that may exist: F, B, I, W of every slot, then R of every worker; -1 for none."""
    slots = stages.slots
    worker = stages.worker_of(columns.stage, columns.micro_batch)
    index = np.where(columns.kind == R, 4 * slots + worker, columns.kind * slots + slot)
    total = 4 * slots + len(stages.lane)
    doubled = np.bincount(index, minlength=total) > 1
    _refuse(columns, doubled[index], "occurs twice")
    row_of = np.full(total, -1, np.int64)
    row_of[index] = np.arange(len(index))
    return row_of


def _check_complete(stages: StageTable, row_of: IntArray) -> None:
    slots = stages.slots
    there = row_of[: 4 * slots].reshape(4, slots) >= 0
    whole, split = there[B], there[I] & there[W]
    any_part = there[I] | there[W]
    _demand(stages, there[F], "F")
    _demand(stages, whole | split, "B (or I with W)")
    _demand(stages, ~(whole & any_part), "either B or I with W, not both,")
    reduces = row_of[4 * slots :] >= 0
    lacking = np.flatnonzero(np.repeat(stages.duration[R] > 0, stages.turns) & ~reduces)
    if len(lacking):
        stage = int(np.searchsorted(stages.worker, lacking[0], side="right")) - 1
        raise InvalidSchedule(
            f"stage {stage} has replicas and the schedule lacks its all-reduce",
            "add a task of kind R after the stage's last backward",
        )


def _refuse(columns: Tasks, wrong: NDArray[np.bool_], what: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        raise InvalidSchedule(f"task {columns.name(int(rows[0]))} {what}")


def _demand(stages: StageTable, fulfilled: NDArray[np.bool_], what: str) -> None:
    slots = np.flatnonzero(~fulfilled)
    if len(slots):
        slot = int(slots[0])
        stage = int(np.searchsorted(stages.offset, slot, side="right")) - 1
        micro_batch = slot - int(stages.offset[stage])
        raise InvalidSchedule(f"the schedule needs {task_name(what, stage, micro_batch)}")
