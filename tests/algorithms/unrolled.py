"""An independent judge of periodic schedules: unroll micro-batches, then look at every single event."""

from collections import defaultdict
from itertools import pairwise

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule


def swept_peaks(problem: Problem, plan: Plan, schedule: PeriodicSchedule) -> list[int]:
    """Checks dependencies, devices and links of unrolled micro-batches; returns the peak bytes of each stage.

    Links carry one transfer at a time for a pair of stages (mode `half`), in either direction.
    """
    model = CostModel(problem)
    period = schedule.period_ns
    batches = 3 * (max(*schedule.shift, *schedule.transfer_shift, 0) + 2)
    edges = model.messages(plan)
    length = {}
    for position, stage in enumerate(plan.stages):
        times = model.stage_times(stage)
        length["F", position], length["B", position] = times.forward, times.backward
    sending: dict[tuple[str, int, int], int] = defaultdict(int)
    for m in edges:
        sending["F", m.source, m.target] += model.message_ns(plan, m)
        sending["B", m.target, m.source] += model.message_ns(plan, m, backward=True)
    start = {
        (kind, stage, i): t + (shift + i) * period
        for kind, stage, t, shift in zip(
            schedule.kinds, schedule.stage, schedule.start_ns, schedule.shift, strict=True
        )
        for i in range(batches)
    }
    moved = {
        (kind, source, target, i): t + (shift + i) * period
        for kind, source, target, t, shift in zip(
            schedule.transfer_kinds,
            schedule.source,
            schedule.target,
            schedule.transfer_start_ns,
            schedule.transfer_shift,
            strict=True,
        )
        for i in range(batches)
    }
    assert set(start) == {(k, s, i) for k, s in length for i in range(batches)}
    assert set(moved) == {(k, a, b, i) for k, a, b in sending for i in range(batches)}

    for (kind, source, target, i), begin in moved.items():
        assert start[kind, source, i] + length[kind, source] <= begin, "sent before it is made"
        assert begin + sending[kind, source, target] <= start[kind, target, i], "read before it has arrived"
    for i in range(batches):
        for before, after in plan.order_edges:
            assert start["F", before, i] + length["F", before] <= start["F", after, i]
            assert start["B", after, i] + length["B", after] <= start["B", before, i]
        for position in range(len(plan.stages)):
            assert start["F", position, i] + length["F", position] <= start["B", position, i]

    busy: dict[object, list[tuple[int, int]]] = defaultdict(list)
    for (kind, position, _), begin in start.items():
        busy[position].append((begin, begin + length[kind, position]))
    for (kind, source, target, _), begin in moved.items():
        busy[frozenset((source, target))].append((begin, begin + sending[kind, source, target]))
    for resource, intervals in busy.items():
        for first, second in pairwise(sorted(intervals)):
            assert first[1] <= second[0], f"{resource} is used twice"

    peaks = []
    for position in range(len(plan.stages)):
        memory = model.stage_memory(plan, position, edges)
        events = [(start["F", position, i], 1) for i in range(batches)]
        events += [(start["B", position, i] + length["B", position], -1) for i in range(batches)]
        live = most = 0
        for _, change in sorted(events, key=lambda e: (e[0], e[1])):
            live += change
            most = max(most, live)
        peaks.append(memory.held + memory.while_live + memory.workspace + max(1, most) * memory.per_micro_batch)
    return peaks
