"""A plan in numbers: what its stages take and hold, and for which messages they wait."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import ge
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.planning import memory_limits
from pipebench.costs.formula import StageMemory, StageTimes
from pipebench.costs.links import Port, flows
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan

BACK, AHEAD, WEIGHT = range(3)
"""Kinds of tasks: a backward or an input gradient, a forward, a weight gradient. The smaller number goes first."""
ANY = 2**62
"""A limit that nothing passes, in ns or bytes."""
Occupied = Mapping[Port, int]
"""Ports, each with the ns for which a message occupies it."""
SENDER, NS, LINK, RECEIVER, CONTENDED = range(5)
"""Columns of `Waits.rows`: the stages and the ns of a message; its link, -1 where it waits for no other message; 1
where messages that other lanes send need the same link or ports, else 0."""


class Waits(NamedTuple):
    """Messages.

    rows: one for each, shape (rows, 5).
    first: the first row of what the tasks of each kind (backwards, forwards) and stage wait for, shape
    (2, stages + 1). sent_first, sent: in the same way the rows that each stage sends.
    port_first: the first of `ports` of each row, shape (rows + 1). ports: numbers of ports, and the ns for which
    a message occupies each, shape (ports of all rows, 2).
    """

    first: IntArray
    rows: IntArray
    sent_first: IntArray
    sent: IntArray
    port_first: IntArray
    ports: IntArray


@dataclass(frozen=True)
class Tables:
    """A plan in numbers, by stage. before, after: neighbours with the ns of a message from or to them.

    reduce: ns of its all-reduce, or of the step of its optimizer. each, while_live, workspace: bytes of a
    micro-batch, while one is live, during a task. held: by lane, bytes without micro-batches. limits: by lane,
    bytes that it may use, less the reserve first. link_mode: whether messages wait for each other on the link
    between two lanes, as `Cluster.link_mode` says; with `delay` they do not. ports: by sending and receiving stage
    the ports that a message occupies, each with its ns.
    """

    count: int
    forward: list[int]
    backward: list[int]
    weight: list[int]
    reduce: list[int]
    before: list[list[tuple[int, int]]]
    after: list[list[tuple[int, int]]]
    lane_of: list[int]
    each: list[int]
    while_live: list[int]
    workspace: list[int]
    held: list[int]
    limits: list[tuple[int, ...]]
    link_mode: LinkMode = "delay"
    ports: Mapping[tuple[int, int], Occupied] = field(default_factory=dict)

    @classmethod
    def of(cls, model: CostModel, plan: Plan, count: int, links: bool = False, patterns: bool = False) -> "Tables":
        """Those of a plan whose stages run `count` micro-batches each.

        links: messages wait for each other as the cluster's links, and ports that several lanes share, make them.
        patterns: those between the same stages go one behind the other, as in a transfer of a periodic schedule.
        """
        link_mode: LinkMode = model.problem.cluster.link_mode if links else "delay"
        edges = model.messages(plan)
        times = [model.stage_times(stage, plan) for stage in plan.stages]
        memory = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
        lanes, lane_of = lanes_of(plan)
        waits = dict.fromkeys(plan.order_edges, (0, 0))
        ports: dict[tuple[int, int], dict[Port, int]] = {}
        merged: LinkMode = "half" if patterns else link_mode
        for flow in flows(model, plan):
            back = flow.backward
            pair = (flow.receiver, flow.sender) if back else (flow.sender, flow.receiver)
            sent = (0, flow.duration_ns) if back else (flow.duration_ns, 0)
            waits[pair] = together(waits.get(pair, (0, 0)), sent, merged)
            if links:
                occupy(ports.setdefault((flow.sender, flow.receiver), {}), flow.ports)
        limits = [memory_limits(model.problem, devices) for devices in lanes]
        return cls.filled(count, times, memory, waits, lane_of, limits, link_mode, ports)

    @classmethod
    def filled(
        cls,
        count: int,
        times: Sequence[StageTimes],
        memory: Sequence[StageMemory],
        waits: Mapping[tuple[int, int], tuple[int, int]],
        lane_of: list[int],
        limits: list[tuple[int, ...]],
        link_mode: LinkMode = "delay",
        ports: Mapping[tuple[int, int], Occupied] | None = None,
    ) -> "Tables":
        """From what each stage takes and holds. waits: by pair of stages the ns of messages there and back."""
        before: list[list[tuple[int, int]]] = [[] for _ in times]
        after: list[list[tuple[int, int]]] = [[] for _ in times]
        for (source, target), (there, back) in sorted(waits.items()):
            before[target].append((source, there))
            after[source].append((target, back))
        held = [0] * len(limits)
        for lane, each in zip(lane_of, memory, strict=True):
            held[lane] += each.held
        return cls(
            count=count,
            forward=[each.forward for each in times],
            backward=[each.backward for each in times],
            weight=[each.weight_gradient for each in times],
            reduce=[each.all_reduce for each in times],
            before=before,
            after=after,
            lane_of=lane_of,
            each=[each.per_micro_batch for each in memory],
            while_live=[each.while_live for each in memory],
            workspace=[each.workspace for each in memory],
            held=held,
            limits=limits,
            link_mode=link_mode,
            ports={pair: occupied for pair, occupied in (ports or {}).items() if occupied},
        )

    @cached_property
    def follow(self) -> list[int]:
        """Stages on the longest path from each stage to the end, itself included."""
        longest = [1] * len(self.after)
        for _ in self.after:
            before = list(longest)
            for stage in reversed(range(len(self.after))):
                longest[stage] = max([1, *(1 + longest[successor] for successor, _ in self.after[stage])])
            if longest == before:
                break
        return longest

    @cached_property
    def lanes(self) -> IntArray:
        """The lane of each stage."""
        return np.array(self.lane_of, np.int64)

    @cached_property
    def memory(self) -> IntArray:
        """Bytes of a micro-batch, of what is there while one is live, and of a workspace; shape (3, stages)."""
        return np.array([self.each, self.while_live, self.workspace], np.int64)

    @cached_property
    def room(self) -> list[int]:
        """By lane, the bytes that an order keeps to: the first limits that do for one micro-batch in each stage.

        ANY where none do.
        """
        least = [held + most for held, most in zip(self.held, self.largest_workspace, strict=True)]
        for stage, lane in enumerate(self.lane_of):
            least[lane] += self.each[stage] + self.while_live[stage]
        for limits in zip(*self.limits, strict=True):
            if all(map(ge, limits, least)):
                return list(limits)
        return [ANY] * len(self.held)

    @cached_property
    def largest_workspace(self) -> list[int]:
        """By lane, the bytes of the task that needs most."""
        most = [0] * len(self.held)
        for stage, lane in enumerate(self.lane_of):
            most[lane] = max(most[lane], self.workspace[stage])
        return most

    @cached_property
    def waits(self) -> Waits:
        """For which messages the tasks of each stage wait, and who waits for them."""
        rows: list[tuple[int, int, int, int, int]] = []
        first: list[list[int]] = []
        senders: list[list[list[int]]] = []
        numbers = {port: at for at, port in enumerate(sorted({p for each in self.ports.values() for p in each}))}
        port_first, ports = [0], list[tuple[int, int]]()
        for neighbours in (self.after, self.before):
            first.append([len(rows)])
            senders.append([[] for _ in self.forward])
            for stage, each in enumerate(neighbours):
                for other, ns in each:
                    senders[-1][other].append(len(rows))
                    occupied, link = self.ports.get((other, stage), {}), self._link(other, stage) if ns else -1
                    contended = bool(occupied) or (link >= 0 and self.link_mode == "half")
                    rows.append((other, ns, link, stage, int(contended)))
                    ports += [(numbers[port], length) for port, length in occupied.items()]
                    port_first.append(len(ports))
                first[-1].append(len(rows))
        sent = [row for kind in senders for each in kind for row in each]
        lengths = [0, *(len(each) for each in senders[0]), *(len(each) for each in senders[1])]
        ends = np.cumsum(lengths)
        stages = len(self.forward)
        return Waits(
            np.array(first, np.int64),
            np.array(rows, np.int64).reshape(-1, 5),
            np.stack([ends[: stages + 1], ends[stages:]]),
            np.array(sent, np.int64),
            np.array(port_first, np.int64),
            np.array(ports, np.int64).reshape(-1, 2),
        )

    def _link(self, sender: int, receiver: int) -> int:
        """The number of the link on which a message waits for others; -1: it waits for none."""
        here, there = self.lane_of[sender], self.lane_of[receiver]
        if self.link_mode == "delay" or here == there:
            return -1
        if self.link_mode == "half":
            here, there = min(here, there), max(here, there)
        return here * len(self.held) + there

    def durations(self, split: bool) -> IntArray:
        """Ns of the tasks of each kind, shape (kinds, stages). split: weight gradients are tasks of their own."""
        if not split:
            return np.array([self.backward, self.forward], np.int64)
        back = [whole - part for whole, part in zip(self.backward, self.weight, strict=True)]
        return np.array([back, self.forward, self.weight], np.int64)


def together(one: tuple[int, int], other: tuple[int, int], link_mode: LinkMode) -> tuple[int, int]:
    """Ns there and back of messages between the same stages: on one link one behind the other."""
    if link_mode == "delay":
        return max(one[0], other[0]), max(one[1], other[1])
    return one[0] + other[0], one[1] + other[1]


def occupy(known: dict[Port, int], more: Iterable[tuple[Port, int]]) -> None:
    """Add for how many ns one more message between the same stages occupies its ports."""
    for port, ns in more:
        known[port] = known.get(port, 0) + ns
