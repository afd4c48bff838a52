"""What a draft takes by a clock: the fastest of a few greedy orders of its tasks. That takes half a millisecond.

In sync. It tells which of many plans is fastest far better than sums do.
"""

from pipebench.algorithms.orders.greedy import best_order
from pipebench.algorithms.orders.numbers_in_flight import numbers_in_flight
from pipebench.algorithms.orders.tables import Tables, occupy, together
from pipebench.algorithms.planning import memory_limits
from pipebench.costs.formula import StageMemory
from pipebench.costs.links import Flow, Port, flow_of
from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench_search.drafts.draft import Draft, Drafting
from pipebench_search.estimates.guess import Guesses

MOST_LOOKED_AT = 2**18
"""Stages looked at in all orders of a draft."""
ORDERS = 4
"""Orders of a draft."""
Waits = dict[tuple[int, int], tuple[int, int]]
"""By pair of stages the ns of messages there and back."""
Ports = dict[tuple[int, int], dict[Port, int]]
"""By sending and receiving stage the ns for which messages occupy each port."""


class Clock:
    """The clock of one problem. What stages hold and send is kept: neighbours share most of it."""

    def __init__(self, model: CostModel, drafting: Drafting, guesses: Guesses) -> None:
        self._model, self._drafting, self._guesses = model, drafting, guesses
        self._problem, self._graph = model.problem, model.graph
        self._sync = model.problem.regime.mode == "sync"
        self._leaving: dict[tuple[int, ...], list[tuple[int, list[int]]]] = {}
        self._memory: dict[tuple[object, ...], StageMemory] = {}
        self._sent: dict[tuple[object, ...], tuple[Flow, Flow]] = {}
        self._limits: dict[tuple[int, int], tuple[int, ...]] = {}

    def shows(self, draft: Draft) -> bool:
        """Whether it tells the time of the draft: several stages of one micro-batch size, in sync."""
        return self._sync and draft.alike and not self._problem.overlap

    def time_ns(self, draft: Draft, most_ns: int | None = None) -> int | None:
        """Of the fastest order that fits in memory; None where none does.

        most_ns: None, too, where none that leaves the reserve free takes less.
        """
        try:
            tables = self.tables(draft)
            looks = 2 * len(draft.parts) ** 2 * tables.count
            tried = _tried(tables)[: max(1, min(ORDERS, MOST_LOOKED_AT // looks))]
            below = None if most_ns is None else (0, most_ns)
            order = best_order(tables, tried, below)
            if not order.complete or (below is not None and order.rank >= below):
                return None
            held, ns = order.rank
        except PipebenchError:
            return None
        return ns if held < len(tables.limits[0]) else None

    def numbers_in_flight(self, draft: Draft) -> list[list[int]]:
        """Micro-batches in flight of each stage that are worth a try.

        Raises PipebenchError where a stage has no times.
        """
        return [each for each, _ in _tried(self.tables(draft))]

    def tables(self, draft: Draft) -> Tables:
        """`Tables.of` the draft's plan, with links.

        Raises PipebenchError where a stage has no times.
        """
        firsts = [0]
        for size in draft.sizes:
            firsts.append(firsts[-1] + size)
        count = self._problem.mini_batch // draft.copies // draft.parts[0].micro_batch
        times = [self._guesses.stage_times(draft, part) for part in draft.parts]
        home = [0] * len(self._graph.operators)
        for at, part in enumerate(draft.parts):
            for op in part.operators:
                home[op] = at
        memory, waits, ports = self._memory_and_messages(draft, home, firsts)
        lanes: dict[int, int] = {}
        lane_of = [lanes.setdefault(part.group, len(lanes)) for part in draft.parts]
        limits = [self._limits_of(firsts[group], draft.sizes[group]) for group in lanes]
        return Tables.filled(count, times, memory, waits, lane_of, limits, self._problem.cluster.link_mode, ports)

    def _memory_and_messages(
        self, draft: Draft, home: list[int], firsts: list[int]
    ) -> tuple[list[StageMemory], Waits, Ports]:
        parts, sizes = draft.parts, draft.sizes
        copies = (draft.copies, sum(sizes)) if draft.copies > 1 else ()
        waits: Waits = {(at, at + 1): (0, 0) for at in range(len(parts) - 1)} if draft.chained else {}
        ports: Ports = {}
        memory: list[StageMemory] = []
        made: Plan | None = None
        for at, part in enumerate(parts):
            away: list[int] = []
            for tensor, readers in self._leaving_tensors(part.operators):
                targets = {home[reader] for reader in readers}
                for target in targets:
                    there = parts[target]
                    if there.group == part.group:
                        waits.setdefault((at, target), (0, 0))
                        continue
                    away.append(tensor)
                    degrees = part.way.tensor_parallel, there.way.tensor_parallel
                    ends = [(firsts[group], sizes[group]) for group in (part.group, there.group)]
                    key = tensor, part.micro_batch, degrees, copies, *ends
                    if key not in self._sent:
                        made = made or self._plan(draft)
                        self._sent[key] = self._both_ways(made, Message(at, target, tensor))
                    ahead, back = self._sent[key]
                    known, sent = waits.get((at, target), (0, 0)), (ahead.duration_ns, back.duration_ns)
                    waits[at, target] = together(known, sent, self._problem.cluster.link_mode)
                    if ahead.ports:
                        occupy(ports.setdefault((at, target), {}), ahead.ports)
                    if back.ports:
                        occupy(ports.setdefault((target, at), {}), back.ports)
            kept = part.operators, id(part.way), sizes[part.group], part.micro_batch, draft.copies, tuple(away)
            if kept not in self._memory:
                made = made or self._plan(draft)
                self._memory[kept] = self._model.stage_memory(made, at, self._model.messages(made))
            memory.append(self._memory[kept])
        return memory, waits, ports

    def _both_ways(self, plan: Plan, message: Message) -> tuple[Flow, Flow]:
        return flow_of(self._model, plan, message, False), flow_of(self._model, plan, message, True)

    def _plan(self, draft: Draft) -> Plan:
        plan = self._drafting.plan_of(draft)
        assert plan is not None, "the draft is possible"
        return plan

    def _leaving_tensors(self, operators: tuple[int, ...]) -> list[tuple[int, list[int]]]:
        """Tensors that operators make and others read, with these."""
        if operators not in self._leaving:
            inside = set(operators)
            self._leaving[operators] = [
                (tensor, outside)
                for tensor, producer in enumerate(self._graph.producers)
                if producer in inside
                and (outside := [op for op in self._graph.consumers[tensor] if op not in inside])
            ]
        return self._leaving[operators]

    def _limits_of(self, first: int, size: int) -> tuple[int, ...]:
        if (first, size) not in self._limits:
            self._limits[first, size] = memory_limits(self._problem, range(first, first + size))
        return self._limits[first, size]


def _tried(tables: Tables) -> list[tuple[list[int], bool]]:
    """Orders, those first that were mostly the best: split backwards, and what memory allows, the more first."""
    free, held = numbers_in_flight(tables, tables.count)
    splits = (True, False) if any(tables.weight) else (False,)
    return [(each, split) for split in splits for each in (*reversed(held), *free)]
