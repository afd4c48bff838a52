"""One round of a schedule without end, at the pace of its simulation: when each task and message starts."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import lcm

import numpy as np

from pipebench.costs.links import flows
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.trace import Trace

Task = tuple[str, int, int]
Sent = tuple[str, int, int, int, int]
"""Kind, sender, receiver, tensor, micro-batch."""


@dataclass(frozen=True, slots=True)
class Round:
    """The starts of the tasks and messages of micro-batches 0 … size - 1; each comes again `length_ns` later."""

    size: int
    length_ns: int
    tasks: dict[Task, int]
    messages: dict[Sent, int]


def round_of_orders(model: CostModel, plan: Plan, schedule: PeriodicSchedule, period_ns: int) -> Round:
    """The earliest starts, not below 0, that keep the pattern's order on each lane and link, at this period.

    Longest paths over waits. No circle has a positive length, because the period is no shorter than the pace of
    these orders (simulation.periodic.exact_pace). For plans whose messages share no bandwidth.
    """
    size = lcm(*(stage.turns for stage in plan.stages))
    waits = _Waits(model, plan, schedule, size, period_ns)
    tail, head, weight = np.array(list(waits.arcs()), np.int64).reshape(-1, 3).T
    starts = np.zeros(len(waits.number), np.int64)
    for _ in range(len(starts) + 1):
        later = starts.copy()
        np.maximum.at(later, head, starts[tail] + weight)
        if (later == starts).all():
            break
        starts = later
    else:
        raise UnsupportedProblem("the schedule does not run at the period of its simulation")
    at = {key: int(starts[number]) for key, number in waits.number.items()}
    return Round(
        size,
        size * period_ns,
        {key: start for key, start in at.items() if len(key) == 3},
        {key: start for key, start in at.items() if len(key) == 5},
    )


class _Waits:
    """Who waits for whom within rounds of `size` micro-batches."""

    def __init__(
        self, model: CostModel, plan: Plan, schedule: PeriodicSchedule, size: int, period_ns: int
    ) -> None:
        self.plan, self.size, self.length_ns = plan, size, size * period_ns
        self.flows = [flow for flow in flows(model, plan) if not flow.in_place]
        times = [model.stage_times(stage, plan) for stage in plan.stages]
        self.lasting: dict[Task | Sent, int] = {}
        self.pattern: dict[Task | Sent, int] = {}
        operations = zip(schedule.kinds, schedule.stage, schedule.start_ns, schedule.shift, strict=True)
        for kind, stage, start, shift in operations:
            for number in range(size):
                key = kind, stage, number
                self.lasting[key] = times[stage].forward if kind == "F" else times[stage].backward
                self.pattern[key] = start + (shift + number) * schedule.period_ns
        sends = zip(
            schedule.transfer_kinds, schedule.source, schedule.target, schedule.transfer_start_ns,
            schedule.transfer_shift, strict=True,
        )  # fmt: skip
        begins = {(kind, a, b): start + shift * schedule.period_ns for kind, a, b, start, shift in sends}
        for flow in self.flows:
            hop = "FB"[flow.backward], flow.sender, flow.receiver
            for number in range(flow.turn, size, flow.turns):
                sent = *hop, flow.tensor, number
                self.lasting[sent] = flow.duration_ns
                if hop in begins:
                    before = sum(
                        other.duration_ns
                        for other in self.flows
                        if ("FB"[other.backward], other.sender, other.receiver, other.turn) == (*hop, flow.turn)
                        and other.tensor < flow.tensor
                    )
                    self.pattern[sent] = begins[hop] + number * schedule.period_ns + before
        self.number = {key: position for position, key in enumerate(self.lasting)}
        self.laid_ns = size * schedule.period_ns
        self.messages = sorted({(m.source, m.target, m.tensor) for m in model.messages(plan)})

    def arcs(self) -> Iterator[tuple[int, int, int]]:
        """From, to, and by how many ns later the second starts at least."""
        for number in range(self.size):
            for stage in range(len(self.plan.stages)):
                yield self._after(("F", stage, number), ("B", stage, number))
            for source, target, tensor in self.messages:
                yield from self._through("F", source, target, tensor, number)
                yield from self._through("B", target, source, tensor, number)
            for before, after in self.plan.order_edges:
                yield self._after(("F", before, number), ("F", after, number))
                yield self._after(("B", after, number), ("B", before, number))
        for ring in self._rings():
            laps = [self.pattern[key] // self.laid_ns for key in ring]
            for (one, lap), (other, next_lap) in pairwise(zip(ring, laps, strict=True)):
                yield self._after(one, other, next_lap - lap)
            yield self._after(ring[-1], ring[0], laps[0] - laps[-1] - 1)

    def _after(self, one: Task | Sent, other: Task | Sent, laps: int = 0) -> tuple[int, int, int]:
        return self.number[one], self.number[other], self.lasting[one] + laps * self.length_ns

    def _through(
        self, kind: str, sender: int, receiver: int, tensor: int, number: int
    ) -> Iterator[tuple[int, int, int]]:
        made, read, sent = (
            (kind, sender, number),
            (kind, receiver, number),
            (kind, sender, receiver, tensor, number),
        )
        if sent not in self.number:
            yield self._after(made, read)
            return
        yield self._after(made, sent)
        yield self._after(sent, read)

    def _rings(self) -> Iterator[list[Task | Sent]]:
        """What each lane and each link carries, in the order of one round of the pattern."""
        found: dict[object, list[Task | Sent]] = defaultdict(list)
        depth = _depths(len(self.plan.stages), [(a, b) for a, b, _ in self.messages] + list(self.plan.order_edges))
        for key in self.lasting:
            if len(key) == 3:
                found[self.plan.stages[key[1]].devices_of(key[2])].append(key)
        for flow in self.flows:
            if flow.link is not None:
                numbers = range(flow.turn, self.size, flow.turns)
                hop = "FB"[flow.backward], flow.sender, flow.receiver, flow.tensor
                found["link", *flow.link] += [(*hop, number) for number in numbers]

        def place(key: Task | Sent) -> tuple[int, int, int]:
            along = 0
            if len(key) == 3:
                along = depth[key[1]] if key[0] == "F" else 2 * len(depth) - depth[key[1]]
            return self.pattern[key] % self.laid_ns, self.lasting[key], along

        return (sorted(ring, key=place) for ring in found.values())


def _depths(stages: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For each stage the most stages on a path to it."""
    depth = [0] * stages
    for _ in range(stages):
        for before, after in edges:
            depth[after] = max(depth[after], depth[before] + 1)
    return depth


MOST_CYCLES = 64
"""Micro-batches after which a run may repeat, turns apart."""


def rounds_of_run(plan: Plan, schedule: PeriodicSchedule, trace: Trace) -> Iterator[Round]:
    """The last rounds of a run that may repeat for ever: of 1, 2, … micro-batches, as far as the run shows them.

    trace: of the simulation, from a cold start. Whether a round does repeat is for the checker to say.
    """
    turns = lcm(*(stage.turns for stage in plan.stages))
    operations = zip(schedule.kinds, schedule.stage, schedule.shift, strict=True)
    sends = zip(schedule.transfer_kinds, schedule.source, schedule.target, schedule.transfer_shift, strict=True)
    shift = {(kind, stage): by for kind, stage, by in operations}
    shift_sent = {(kind, sender, receiver): by for kind, sender, receiver, by in sends}
    last = 1 + max(trace.micro_batch) + min((*shift.values(), *shift_sent.values()))
    tasks = dict(zip(zip(trace.kinds, trace.stage, trace.micro_batch, strict=True), trace.start_ns, strict=True))
    named = zip(trace.transfer_kinds, trace.source, trace.target, trace.tensor, trace.message, strict=True)
    messages = dict(zip(named, trace.transfer_start_ns, strict=True))
    for size in sorted({lcm(turns, cycles) for cycles in range(1, MOST_CYCLES + 1)}):
        begun = [tasks.get(("F", 0, last - 1 - shift["F", 0] - back)) for back in (0, size)]
        if begun[0] is None or begun[1] is None or begun[0] <= begun[1]:
            return
        length_ns = begun[0] - begun[1]

        def of_round(number: int, start: int, by: int, size: int = size, length_ns: int = length_ns) -> int | None:
            """The start in the round of micro-batches 0 … size - 1, if this one is in the last round."""
            inside = last - size <= number + by < last
            return start - number // size * length_ns if inside else None

        laid: dict[Task, int] = {}
        for (kind, stage, number), start in tasks.items():
            placed = of_round(number, start, shift[kind, stage])
            if placed is not None:
                laid[kind, stage, number % size] = placed
        sent: dict[Sent, int] = {}
        for (kind, sender, receiver, tensor, number), start in messages.items():
            placed = of_round(number, start, shift_sent.get((kind, sender, receiver), shift[kind, sender]))
            if placed is not None:
                sent[kind, sender, receiver, tensor, number % size] = placed
        least = min((*laid.values(), *sent.values()))
        yield Round(
            size,
            length_ns,
            {task: start - least for task, start in laid.items()},
            {message: start - least for message, start in sent.items()},
        )
