"""The trace of a run: tasks, transfers and memory over time, from the instants of the event loop."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from pipebench.costs.formula import StageMemory
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import B, F, R, Tasks, W, kind_letters
from pipebench.domain.trace import MemoryTimeline, Trace
from pipebench.simulation.kernel import Instants
from pipebench.simulation.network import FlowTable
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import TaskTable


def memory_timelines(
    columns: Tasks, start: IntArray, end: IntArray, memory: Sequence[StageMemory]
) -> tuple[MemoryTimeline, ...]:
    """The timeline of every device, in ascending order. memory: the memory of each stage.

    A micro-batch is live on a stage from the start of its F to the end of its B (or of its W). A task other than R
    adds the workspace of its stage; a pair adds those of both stages.
    """
    timelines: list[MemoryTimeline] = []
    for lane, devices in enumerate(columns.devices):
        rows = slice(int(columns.first[lane]), int(columns.first[lane + 1]))
        time_ns, in_use = _lane(columns, rows, start[rows], end[rows], memory)
        times, values = tuple(time_ns.tolist()), tuple(in_use.tolist())
        timelines += [MemoryTimeline(device=device, time_ns=times, bytes=values) for device in devices]
    return tuple(sorted(timelines, key=lambda timeline: timeline.device))


def _lane(
    columns: Tasks, rows: slice, start: IntArray, end: IntArray, memory: Sequence[StageMemory]
) -> tuple[IntArray, IntArray]:
    """Instants and bytes at which the use on one lane changes, beginning with instant 0."""
    stage, kind = columns.stage[rows], columns.kind[rows]
    present = np.unique(stage)
    during = np.zeros(len(stage), np.int64)
    after = np.zeros(len(stage), np.int64)
    last_part = (kind == B) | (kind == W)
    for s in present:
        ending = (stage == s) & last_part
        live = np.cumsum((stage == s) & (kind == F)) - np.cumsum(ending)
        during += _held_bytes(memory[s], live + ending)
        after += _held_bytes(memory[s], live)
    workspace = np.array([each.workspace for each in memory], np.int64)
    during += np.where(kind == R, 0, workspace[stage])
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


def _held_bytes(memory: StageMemory, live: IntArray) -> IntArray:
    """StageMemory.at for an array of live micro-batches."""
    held: IntArray = memory.held + live * memory.per_micro_batch + np.where(live > 0, memory.while_live, 0)
    return held


def build_trace(
    stages: StageTable,
    tasks: TaskTable,
    network: FlowTable,
    instants: Instants,
    memory: Sequence[StageMemory],
    period_ns: int | None = None,
) -> Trace:
    """The simulated trace.

    Tasks stand lane after lane in their order; transfers in the order of their message numbers. Tensors that
    stay on their devices and order edges are not transfers.
    """
    columns = tasks.columns
    end = instants.start + tasks.duration
    flows = np.flatnonzero(network.in_place == 0)
    counts = [int(network.count[flow]) for flow in flows]
    # The same int objects serve all flows, which saves making one for each message.
    numbers = tuple(range(int(stages.count.max())))
    kept = [
        slice(int(network.base[flow]), int(network.base[flow]) + count)
        for flow, count in zip(flows, counts, strict=True)
    ]
    return Trace(
        origin="simulated",
        lanes=columns.devices,
        lane=_repeat_values(np.arange(len(columns.devices)), np.diff(columns.first).tolist()),
        stage=_column(columns.stage),
        micro_batch=_column(columns.micro_batch),
        kinds=kind_letters(columns.kind),
        start_ns=_column(instants.start),
        end_ns=_column(end),
        source=_repeat_values(network.sender[flows], counts),
        target=_repeat_values(network.receiver[flows], counts),
        tensor=_repeat_values(network.tensor[flows], counts),
        message=tuple(
            chain.from_iterable(
                numbers[network.turn[flow] :: network.turns[flow]][:count]
                for flow, count in zip(flows, counts, strict=True)
            )
        ),
        transfer_kinds="".join("FB"[int(network.backward[f])] * n for f, n in zip(flows, counts, strict=True)),
        transfer_start_ns=_pieces(instants.sent, kept),
        transfer_end_ns=_pieces(instants.arrived, kept),
        memory=memory_timelines(columns, instants.start, end, memory),
        total_ns=int(max(end.max(initial=0), instants.arrived.max(initial=0))),
        period_ns=period_ns,
    )


def _column(values: IntArray) -> tuple[int, ...]:
    return tuple(values.tolist())


def _repeat_values(values: IntArray, counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(chain.from_iterable((int(value),) * count for value, count in zip(values, counts, strict=True)))


def _pieces(values: IntArray, kept: Sequence[slice]) -> tuple[int, ...]:
    return _column(np.concatenate([values[piece] for piece in kept])) if kept else ()
