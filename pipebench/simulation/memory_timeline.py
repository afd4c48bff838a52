"""Memory over time of each device, from the order of the tasks on its lane and their instants."""

from collections.abc import Sequence

import numpy as np

from pipebench.costs.formula import StageMemory
from pipebench.costs.quantise import IntArray
from pipebench.domain.trace import MemoryTimeline
from pipebench.simulation.tasks import BACKWARD, FORWARD, REDUCE, WEIGHT, Columns


def memory_timelines(
    columns: Columns, start: IntArray, end: IntArray, memory: Sequence[StageMemory]
) -> tuple[MemoryTimeline, ...]:
    """The timeline of every device, ascending; memory: that of each stage.

    A micro-batch is live on a stage from the start of its F to the end of its B (or of its W). While a task
    other than R runs, its stage's workspace is held too; while a pair runs, those of both.
    """
    timelines: list[MemoryTimeline] = []
    for lane, devices in enumerate(columns.devices):
        rows = slice(int(columns.first[lane]), int(columns.first[lane + 1]))
        time_ns, in_use = _lane(columns, rows, start[rows], end[rows], memory)
        times, values = tuple(time_ns.tolist()), tuple(in_use.tolist())
        timelines += [MemoryTimeline(device=device, time_ns=times, bytes=values) for device in devices]
    return tuple(sorted(timelines, key=lambda timeline: timeline.device))


def _lane(
    columns: Columns, rows: slice, start: IntArray, end: IntArray, memory: Sequence[StageMemory]
) -> tuple[IntArray, IntArray]:
    """Instants and bytes at which the use on one lane changes, beginning with instant 0."""
    stage, kind = columns.stage[rows], columns.kind[rows]
    present = np.unique(stage)
    during = np.zeros(len(stage), np.int64)
    after = np.zeros(len(stage), np.int64)
    last_part = (kind == BACKWARD) | (kind == WEIGHT)
    for s in present:
        ending = (stage == s) & last_part
        live = np.cumsum((stage == s) & (kind == FORWARD)) - np.cumsum(ending)
        during += _held(memory[s], live + ending)
        after += _held(memory[s], live)
    workspace = np.array([each.workspace for each in memory], np.int64)
    during += np.where(kind == REDUCE, 0, workspace[stage])
    inside = (columns.together >= rows.start) & (columns.together < rows.stop)
    pair = columns.together[inside] - rows.start
    during[pair] += workspace[stage[pair + 1]]
    # A gap of no length between two tasks is no instant of its own.
    gap = np.ones(len(stage), bool)
    gap[:-1] = start[1:] > end[:-1]
    gap[pair] = False
    begins = np.ones(len(stage), bool)
    begins[pair + 1] = False
    times = np.stack([start, end], axis=1).ravel()
    values = np.stack([during, after], axis=1).ravel()
    there = np.stack([begins, gap], axis=1).ravel()
    times, values = times[there], values[there]
    if len(times) == 0 or times[0] > 0:
        idle = sum(memory[s].at(0) for s in present)
        times = np.concatenate([np.zeros(1, np.int64), times])
        values = np.concatenate([np.full(1, idle, np.int64), values])
    changes = np.ones(len(values), bool)
    changes[1:] = values[1:] != values[:-1]
    return times[changes], values[changes]


def _held(memory: StageMemory, live: IntArray) -> IntArray:
    """StageMemory.at for an array of live micro-batches."""
    held: IntArray = memory.held + live * memory.per_micro_batch + np.where(live > 0, memory.while_live, 0)
    return held
