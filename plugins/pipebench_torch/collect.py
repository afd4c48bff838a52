"""The reports of all processes as one trace."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import mean, median

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, Schedule
from pipebench.domain.trace import MemoryTimeline, Trace
from pipebench_torch.placing.layout import Layout
from pipebench_torch.placing.messages import TOKEN, Traffic, as_whole, traffic_of
from pipebench_torch.placing.orders import Task, lane_orders
from pipebench_torch.processes.job import ProcessReport, TaskTimes


def trace_of(
    problem: Problem, plan: Plan, schedule: Schedule, layout: Layout, reports: Sequence[ProcessReport]
) -> Trace:
    """The run of median length as a trace.

    A task of several replicas begins and ends with the last of them; the all-reduces of replicas in turn begin
    together with the last of them. No task begins before its messages were sent. Of a transfer, the first copy of
    the pipeline counts: from its last piece sent to its last piece received.
    """
    run = _median_run([[report.runs[i] for report in reports] for i in range(len(reports[0].runs))])
    zero = min(tasks.begun for tasks in run)
    orders = lane_orders(problem, plan, schedule, layout)
    traffic = traffic_of(problem.profile.graph, layout)
    lanes = [tuple(sorted(devices)) for devices in orders]
    rows: list[Row] = []
    for number, (devices, tasks) in enumerate(zip(lanes, orders.values(), strict=True)):
        ranks = [layout.devices.index(device) for device in devices]
        for position, task in enumerate(tasks):
            begin = max(max(run[rank].begin[position], _sent(traffic, run, rank, task)) for rank in ranks) - zero
            end = max(run[rank].end[position] for rank in ranks) - zero
            rows.append((number, task, min(begin, end), end))
    rows = _reduced_together(rows)
    begins = {as_whole(task): begin for _, task, begin, _ in rows}
    moved = _transfers(traffic, layout, run, zero, begins)
    return Trace(
        origin="measured",
        lanes=tuple(lanes),
        lane=tuple(row[0] for row in rows),
        stage=tuple(row[1][0] for row in rows),
        micro_batch=tuple(row[1][1] for row in rows),
        kinds="".join(row[1][2] for row in rows),
        start_ns=tuple(row[2] for row in rows),
        end_ns=tuple(row[3] for row in rows),
        source=tuple(key[1] for key in moved),
        target=tuple(key[2] for key in moved),
        tensor=tuple(key[3] for key in moved),
        message=tuple(key[4] for key in moved),
        transfer_kinds="".join(key[0] for key in moved),
        transfer_start_ns=tuple(start for start, _ in moved.values()),
        transfer_end_ns=tuple(end for _, end in moved.values()),
        memory=tuple(
            _memory(layout, rank, report, run[rank], zero)
            for rank, report in enumerate(reports)
            if layout.copy_of(rank) == 0
        ),
        total_ns=max(tasks.ended for tasks in run) - zero,
        period_ns=_period(layout, rows, reports[0].delay) if layout.rounds > 1 else None,
    )


Row = tuple[int, Task, int, int]
"""The lane, the task, its begin and its end."""


def _reduced_together(rows: list[Row]) -> list[Row]:
    """Each all-reduce from when the last replica of its stage has come to it."""
    begins: dict[int, int] = {}
    for _, (stage, _, kind), begin, _ in rows:
        if kind == ALL_REDUCE:
            begins[stage] = max(begin, begins.get(stage, 0))
    return [
        (lane, task, begins[task[0]], max(begins[task[0]], end))
        if task[2] == ALL_REDUCE
        else (lane, task, begin, end)
        for lane, task, begin, end in rows
    ]


def _median_run(runs: list[list[TaskTimes]]) -> list[TaskTimes]:
    """The run of median length; of two in the middle the longer.

    A run lasts from the first process that begins to the last that ends.
    """
    ordered = sorted(runs, key=lambda run: max(t.ended for t in run) - min(t.begun for t in run))
    return ordered[len(ordered) // 2]


Key = tuple[str, int, int, int, int]


def _sent(traffic: Traffic, run: list[TaskTimes], rank: int, task: Task) -> int:
    """When the last message for a task of a process was sent; 0 where it needs none, or nobody tells."""
    pieces = traffic.awaited_by(rank, task)
    return max((run[piece.source].sent.get(piece.tag, 0) for piece in pieces if not piece.local), default=0)


def _transfers(
    traffic: Traffic, layout: Layout, run: list[TaskTimes], zero: int, begins: Mapping[Task, int]
) -> dict[Key, tuple[int, int]]:
    """When each message was sent and received. A task that began before it took a piece found it there.

    begins: of the tasks, in whole backwards.
    """
    found: dict[Key, tuple[int, int]] = {}
    for piece in traffic.pieces:
        if piece.local or piece.tensor == TOKEN or layout.copy_of(piece.source):
            continue
        if piece.tag not in run[piece.source].sent:  # torch.distributed.pipelining does not tell
            continue
        key = (piece.kind, piece.sender, piece.receiver, piece.tensor, piece.sent)
        start, got = run[piece.source].sent[piece.tag] - zero, run[piece.target].got[piece.tag] - zero
        end = min(got, begins.get((piece.receiver, piece.needed, piece.kind), got))
        before = found.get(key, (start, end))
        found[key] = (max(before[0], start), max(before[1], start, end))
    return found


def _memory(layout: Layout, rank: int, report: ProcessReport, tasks: TaskTimes, zero: int) -> MemoryTimeline:
    """Bytes held at the start, then for each task the most during it and those after it."""
    times, values = [0], [report.held_bytes]
    for position, (during, after) in enumerate(report.memory):
        for instant, value in ((tasks.begin[position] - zero, during), (tasks.end[position] - zero, after)):
            if instant > times[-1]:
                times.append(instant)
                values.append(value)
            else:
                values[-1] = max(values[-1], value)
    return MemoryTimeline(device=layout.device_of(rank), time_ns=tuple(times), bytes=tuple(values))


def _period(layout: Layout, rows: list[Row], delay: int) -> int:
    """Time in ns of one micro-batch: the median between the ends of successive mini-batches, once the pipe is
    full; the mean where replicas take turns, whose mini-batches do not end evenly.
    """
    ends = [0] * layout.rounds
    for _, (stage, micro_batch, _), _, end in rows:
        round_ = layout.round_of(stage, micro_batch)
        ends[round_] = max(ends[round_], end)
    gaps = [after - before for before, after in pairwise(accumulate(ends, max))]
    steady = gaps[min(delay, len(gaps) - 1) : -1] or gaps
    size = layout.plan.stages[0].micro_batch
    middle = mean if layout.plan.takes_turns else median
    return max(1, round(middle(steady) * size / layout.samples))
