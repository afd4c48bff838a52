"""The scheduler `1f1b-rr`: a periodic pattern in which all starts as soon as it can; replicas may take turns."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipebench.algorithms.chains.one_f_one_b_star import Run, Send, most_live, placed_schedule, too_large
from pipebench.algorithms.planning import memory_limits
from pipebench.check.memory import live_at
from pipebench.check.periodic import hop_times, link_between
from pipebench.costs.formula import Formula
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import turns_between
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench.domain.topology import topological_order
from pipebench.hooks.context import Context

STEP = 64
"""A period that does not fit is followed by one that is longer by this part of it."""


def schedule(problem: Problem, plan: Plan, context: Context) -> PeriodicSchedule:
    """The pattern in which all starts as soon as it can, of the shortest period found whose memory fits.

    Micro-batch i runs on replica i mod r; one of r replicas runs a forward and a backward every r periods. Each
    operation starts when its inputs are there and its device, or link, is free at that time of every r-th period.
    Periods are tried from the load of the busiest device or link upwards, in steps of a 64th, and the first that
    fits is narrowed down; memory inside the reserve is tried first.

    Raises UnsupportedProblem for the sync regime, for stages that share devices and for several micro-batch sizes,
    InfeasibleProblem for a stage that does not fit with one micro-batch in flight.
    """
    if problem.regime.mode != "async":
        raise UnsupportedProblem("1f1b-rr has no flush: it schedules the async regime only", "use 1f1b for sync")
    devices = [device for stage in plan.stages for device in stage.devices]
    if len(devices) != len(set(devices)):
        raise UnsupportedProblem("1f1b-rr gives every stage devices of its own; this plan shares some")
    if len({stage.micro_batch for stage in plan.stages}) > 1 or any(stage.k != 1 for stage in plan.stages):
        raise UnsupportedProblem("1f1b-rr needs one micro-batch size and k = 1 at every stage")
    builder = _Builder(CostModel(problem), plan)
    found = builder.shortest(context)
    context.count("operations", len(found.runs) + len(found.sends))
    return placed_schedule(found.period, found.runs, found.sends)


@dataclass(slots=True)
class _Pattern:
    """A pattern in the making. taken: (start, ns) of what runs on each device set or link."""

    period: int
    runs: list[Run] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    taken: dict[object, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def place(self, resource: object, every: int, ready: int, length: int) -> int:
        """The first start from `ready` on at which a resource is free; all on it repeats every `every` ns."""
        start = ready
        for _ in range(len(self.taken[resource]) + 1):
            for other, taken in self.taken[resource]:
                behind = (start - other) % every
                if behind < taken:
                    start += taken - behind
                elif behind + length > every:
                    start += every - behind + taken
        self.taken[resource].append((start, length))
        return start


class _Builder:
    """A plan in numbers, and the patterns made of it."""

    def __init__(self, model: CostModel, plan: Plan) -> None:
        self._plan, self._mode = plan, model.problem.cluster.link_mode
        self._times = [model.stage_times(stage, plan) for stage in plan.stages]
        self._sent = hop_times(model, plan)
        edges = model.messages(plan)
        self._memory = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
        self._limits = [memory_limits(model.problem, stage.devices) for stage in plan.stages]
        self._before: list[list[int]] = [[] for _ in plan.stages]
        self._after: list[list[int]] = [[] for _ in plan.stages]
        for source, target in stage_edges(model.graph, plan):
            self._before[target].append(source)
            self._after[source].append(target)
        names = [f"stage {position}" for position in range(len(plan.stages))]
        self._order = list(topological_order(self._after, names))

    def shortest(self, context: Context) -> _Pattern:
        """The pattern of the shortest period found that fits."""
        for choice in (0, -1):
            limits = [each[choice] for each in self._limits]
            if all(memory.most_live(limit) >= 1 for memory, limit in zip(self._memory, limits, strict=True)):
                break
        else:
            position = next(p for p, memory in enumerate(self._memory) if memory.most_live(limits[p]) < 1)
            raise too_large(position, self._memory[position], limits[position])
        refused, period = 0, self._least()
        while not self._fits(found := self._pattern(period), limits):
            context.count("periods")
            refused, period = period, period + max(1, period // STEP)
        while period - refused > 1 and refused:
            middle = (refused + period) // 2
            tried = self._pattern(middle)
            if self._fits(tried, limits):
                found, period = tried, middle
            else:
                refused = middle
        return found

    def _least(self) -> int:
        """The load of the busiest device or link, in ns for each micro-batch."""
        loads: dict[object, int] = defaultdict(int)
        turns: dict[object, int] = {}
        for position, (stage, times) in enumerate(zip(self._plan.stages, self._times, strict=True)):
            loads[position], turns[position] = times.period, stage.turns
        for link, every, length in self._links():
            loads[link] += length
            turns[link] = every
        return max(1, *(Formula.pace_ns(load, turns[resource]) for resource, load in loads.items()))

    def _links(self) -> Iterator[tuple[object, int, int]]:
        """Each transfer's link, its turns and ns; nothing where transfers do not wait for each other."""
        for hops in self._sent.values() if self._mode != "delay" else ():
            for (source, target), length in hops.items():
                yield link_between(self._plan, source, target, self._mode), self._turns(source, target), length

    def _turns(self, source: int, target: int) -> int:
        return turns_between(self._plan.stages[source], self._plan.stages[target])

    def _pattern(self, period: int) -> _Pattern:
        made = _Pattern(period)
        ended: dict[int, int] = {}
        for stage in self._order:
            arrivals = [self._send(made, FORWARD, other, stage, ended[other]) for other in self._before[stage]]
            ended[stage] = self._run(made, FORWARD, stage, max(arrivals, default=0))
        back: dict[int, int] = {}
        for stage in reversed(self._order):
            arrivals = [self._send(made, BACKWARD, other, stage, back[other]) for other in self._after[stage]]
            back[stage] = self._run(made, BACKWARD, stage, max([ended[stage], *arrivals]))
        return made

    def _run(self, made: _Pattern, kind: str, stage: int, ready: int) -> int:
        """Place an operation; its end."""
        times = self._times[stage]
        length = times.forward if kind == FORWARD else times.backward
        every = made.period * self._plan.stages[stage].turns
        start = made.place(stage, every, ready, length)
        made.runs.append((stage, kind, start))
        return start + length

    def _send(self, made: _Pattern, kind: str, source: int, target: int, ready: int) -> int:
        """Place a transfer; when it arrives."""
        length = self._sent[kind].get((source, target), 0)
        if length == 0:
            return ready
        start = ready
        if self._mode != "delay":
            link = link_between(self._plan, source, target, self._mode)
            start = made.place(link, made.period * self._turns(source, target), ready, length)
        made.sends.append((source, target, kind, start))
        return start + length

    def _fits(self, made: _Pattern, limits: list[int]) -> bool:
        starts = {(stage, kind): start for stage, kind, start in made.runs}
        return all(
            self._live(made.period, position, starts) <= most_live(self._plan.stages[position], memory, limit)
            for position, (memory, limit) in enumerate(zip(self._memory, limits, strict=True))
        )

    def _live(self, period: int, position: int, starts: dict[tuple[int, str], int]) -> int:
        """Micro-batches that one replica keeps in flight."""
        first, end = starts[position, FORWARD], starts[position, BACKWARD] + self._times[position].backward
        return max(1, live_at(first, end, first, period * self._plan.stages[position].turns))
