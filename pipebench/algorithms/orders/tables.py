"""A plan in numbers: what its stages take and hold, and for which messages they wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.planning import memory_limits
from pipebench.costs.formula import StageMemory, StageTimes
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan

BACK, AHEAD, WEIGHT = range(3)
"""Kinds of tasks: a backward or an input gradient, a forward, a weight gradient. The smaller number goes first."""
ANY = 2**62
"""A limit that nothing passes, in ns or bytes."""


class Waits(NamedTuple):
    """Messages as rows, shape (rows, 4): who sends, its ns, its link, who waits for it.

    first: the first row of what the tasks of each kind (backwards, forwards) and stage wait for, shape
    (2, stages + 1). sent_first, sent: in the same way the rows that each stage sends.
    """

    first: IntArray
    rows: IntArray
    sent_first: IntArray
    sent: IntArray


@dataclass(frozen=True)
class Tables:
    """A plan in numbers, by stage. before, after: neighbours with the ns of a message from or to them.

    reduce: ns of its all-reduce, or of the step of its optimizer. each, while_live, workspace: bytes of a
    micro-batch, while one is live, during a task. held: by lane, bytes without micro-batches. limits: by lane,
    bytes that it may use, less the reserve first. link_mode: whether messages wait for each other on the link
    between two lanes, as `Cluster.link_mode` says; with `delay` they do not.
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

    @classmethod
    def of(cls, model: CostModel, plan: Plan, count: int, links: bool = False, patterns: bool = False) -> "Tables":
        """Those of a plan whose stages run `count` micro-batches each.

        links: messages between two lanes wait for each other as the cluster's links make them wait.
        patterns: those between the same stages go one behind the other, as in a transfer of a periodic schedule.
        """
        link_mode: LinkMode = model.problem.cluster.link_mode if links else "delay"
        edges = model.messages(plan)
        times = [model.stage_times(stage, plan) for stage in plan.stages]
        memory = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
        lanes, lane_of = lanes_of(plan)
        waits = dict.fromkeys(plan.order_edges, (0, 0))
        for message in edges:
            pair = message.source, message.target
            sent = model.message_ns(plan, message), model.message_ns(plan, message, backward=True)
            waits[pair] = together(waits.get(pair, (0, 0)), sent, "half" if patterns else link_mode)
        limits = [memory_limits(model.problem, devices) for devices in lanes]
        return cls.filled(count, times, memory, waits, lane_of, limits, link_mode)

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
    def waits(self) -> Waits:
        """For what the tasks of each stage wait, and who waits for them."""
        rows: list[tuple[int, int, int, int]] = []
        first: list[list[int]] = []
        senders: list[list[list[int]]] = []
        for neighbours in (self.after, self.before):
            first.append([len(rows)])
            senders.append([[] for _ in self.forward])
            for stage, each in enumerate(neighbours):
                for other, ns in each:
                    senders[-1][other].append(len(rows))
                    rows.append((other, ns, self._link(other, stage), stage))
                first[-1].append(len(rows))
        sent = [row for kind in senders for each in kind for row in each]
        lengths = [0, *(len(each) for each in senders[0]), *(len(each) for each in senders[1])]
        ends = np.cumsum(lengths)
        stages = len(self.forward)
        return Waits(
            np.array(first, np.int64),
            np.array(rows, np.int64).reshape(-1, 4),
            np.stack([ends[: stages + 1], ends[stages:]]),
            np.array(sent, np.int64),
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
