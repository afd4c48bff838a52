"""Bisection on the target period (GraphPipe, algorithm 1), and the stages behind the depth that it finds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.chain_dp import UNREACHED, Depths
from pipebench_graphpipe.feasibility import ChainDepths, Closing, Feasibility, closings, tail_depths
from pipebench_graphpipe.space import (
    PLAIN,
    Branch,
    Fork,
    Head,
    OperatorChain,
    Operators,
    head_of,
    left_out,
    position_of,
    stage_operators,
    tail_operators,
    whole,
)
from pipebench_graphpipe.stage_costs import StageCosts


@dataclass(frozen=True, slots=True)
class RetracedStage:
    """A stage that a solution stands for.

    slot: its number in the tables.
    choice: its choice of replicas.
    depth: the depth at which it was planned.
    """

    operators: Operators
    slot: int
    choice: int
    depth: int


@dataclass(frozen=True, slots=True)
class Trail:
    """Stages in front of a seed of the chain.

    position: where the stage outside takes over.
    devices: those that are left.
    """

    stages: tuple[RetracedStage, ...]
    position: int
    devices: int

    def after(self, *stages: RetracedStage) -> "Trail":
        """The trail with more stages in front."""
        return replace(self, stages=(*stages, *self.stages))


NEVER = np.iinfo(np.int64).max

Prefer = Literal["first", "last", "short"]
"""Of the stages from one start that lead to the same depth: that which ends first, last, or takes least time."""


class Retrace:
    """Finds the stages behind solutions of one feasibility question.

    period_ns: of each slot and choice of replicas.
    """

    def __init__(self, search: Feasibility, period_ns: IntArray, prefer: Prefer = "first") -> None:
        self.search, self.period_ns, self.prefer = search, period_ns, prefer

    def from_position(self, solved: ChainDepths, position: int, devices: int) -> Trail:
        """The stages from an element on, with at most so many devices."""
        depth = int(solved.at(position)[devices])
        assert depth < UNREACHED
        if solved.seeds[position][devices] == depth:
            return Trail((), position, devices)
        chain = solved.chain
        first_end = int(chain.ends[position + 1])
        found = self._stage(solved, int(chain.rows[position]), range(first_end, chain.width), depth, devices)
        if found is not None:
            end, choice = found
            operators = stage_operators(chain, position, end)
            stage = RetracedStage(operators, int(chain.rows[position]) + end, choice, depth)
            return self._from_row(solved, end, devices - self._replicas_of(choice)).after(stage)
        fork = chain.forks[position]
        for closing in closings(self.search, solved, position):
            if self.search.plain(fork, closing)[devices] == depth:
                return self._side_by_side(solved, position, closing, devices)
        raise AssertionError("a depth without a source")

    def _from_row(self, solved: ChainDepths, end: int, devices: int) -> Trail:
        """The stages from a solution row on: from an element, or from what a head leaves of a fork."""
        position = position_of(solved.chain, end)
        if solved.chain.ends[position] == end:
            return self.from_position(solved, position, devices)
        fork = solved.chain.forks[position]
        head, at = head_of(fork, end)
        for closing in closings(self.search, solved, position):
            if head in fork.agreeing[closing.tail]:
                found = self.search.depths_behind(fork, closing, head)
                if at < len(found) and found[at, devices] == solved.reached[end, devices]:
                    return self._side_by_side(solved, position, closing, devices, head, at)
        raise AssertionError("a depth without a source")

    def _side_by_side(
        self,
        solved: ChainDepths,
        position: int,
        closing: Closing,
        devices: int,
        head: Head | None = None,
        at: int = 0,
    ) -> Trail:
        """The stages of a fork under a closing: what the closing leads with all that follows, and the other
        branches.
        """
        fork = solved.chain.forks[position]
        rest = self.search.rest(fork, closing, head)
        lead = closing.lead if head is None else self.search.lead_behind(fork, closing, head)[at]
        for_lead = _split_devices(lead, rest, devices)
        others = self._others(fork, closing, head, devices - for_lead)
        if head is None or head.owner is None:
            return self._lead(solved, position, closing, for_lead, 0).after(*others)
        if head.owner == closing.tail.owner:
            return self._lead(solved, position, closing, for_lead, at + 1).after(*others)
        branch = fork.branches[head.owner]
        behind = self.search.behind(branch.chain, closing.depth)
        own = _split_devices(behind.at(at + 1), closing.lead, for_lead)
        left = self._branch(branch, behind, at + 1, own)
        return self._lead(solved, position, closing, for_lead - own, 0).after(*left, *others)

    def _lead(self, solved: ChainDepths, position: int, closing: Closing, devices: int, first: int) -> Trail:
        """The owner's branch from its element `first` on, the stage that starts in it, and all that follows."""
        tail, chain = closing.tail, solved.chain
        if tail is PLAIN:
            return self.from_position(solved, position + 1, devices)
        start = Trail((), 0, devices)
        if closing.owner is not None:
            start = self.from_position(closing.owner, first, devices)
        depth = int(tail_depths(self.search, solved, position, tail)[start.position, start.devices])
        row = tail.rows[start.position]
        ends = range(tail.first_end, tail.last_end)
        found = self._stage(solved, row, ends, depth, start.devices)
        assert found is not None
        end, choice = found
        operators = tail_operators(chain, position, tail, start.position, end)
        stage = RetracedStage(operators, row + end, choice, depth)
        return self._from_row(solved, end, start.devices - self._replicas_of(choice)).after(*start.stages, stage)

    def _others(self, fork: Fork, closing: Closing, head: Head | None, devices: int) -> list[RetracedStage]:
        """The stages of branches that no stage outside takes: each branch on its own, or runs of them as one
        stage.
        """
        owners = left_out(closing.tail, head)
        listed, rows = fork.others[owners]
        depths = self.search.others(fork, owners, closing.depth)
        count = len(listed) - closing.tail.absorbed - (head.absorbed if head else 0)
        stages: list[RetracedStage] = []
        while count:
            depth = depths[count, devices]
            branch = fork.branches[listed[count - 1]]
            behind = self.search.behind(branch.chain, closing.depth)
            alone = _find_split(behind.at(0), depths[count - 1], devices, int(depth))
            if alone is not None:
                stages += self._branch(branch, behind, 0, alone)
                count, devices = count - 1, devices - alone
                continue
            first, choice = self._run(depths, rows, count, devices, closing.depth)
            operators = whole(fork, listed[first:count])
            stages.append(RetracedStage(operators, int(rows[first]) + count, choice, closing.depth + 1))
            count, devices = first, devices - self._replicas_of(choice)
        return stages

    def _run(self, depths: Depths, rows: IntArray, count: int, devices: int, behind: int) -> tuple[int, int]:
        for first in range(count - 1):
            for choice, used in enumerate(self.search.replicas.tolist()):
                fits = used <= devices and behind < self.search.limits[rows[first] + count, choice]
                if fits and max(behind + 1, depths[first, devices - used]) == depths[count, devices]:
                    return first, choice
        raise AssertionError("a depth without a source")

    def _branch(self, branch: Branch, solved: ChainDepths, position: int, devices: int) -> list[RetracedStage]:
        """A branch's stages, solved on the chain of a branch that is alike."""
        own = dict(zip(solved.chain.operators, branch.operators, strict=True))
        trail = self.from_position(solved, position, devices)
        return [replace(stage, operators=tuple(own[o] for o in stage.operators)) for stage in trail.stages]

    def _stage(
        self, solved: ChainDepths, row: int, ends: range, depth: int, devices: int
    ) -> tuple[int, int] | None:
        """The end and the choice of replicas of a stage of that depth; None when no single stage has it."""
        choices = int(np.searchsorted(self.search.replicas, devices, side="right"))
        slots = slice(row + ends.start, row + ends.stop)
        left = devices - self.search.replicas[:choices]
        behind = solved.reached[ends.start : ends.stop, left]
        fits = (behind + 1 == depth) & (self.search.limits[slots, :choices] >= depth)
        if not fits.any():
            return None
        if self.prefer == "short":
            at = int(np.where(fits, self.period_ns[slots, :choices], NEVER).argmin())
        else:
            at = int(fits.argmax()) if self.prefer == "first" else fits.size - 1 - int(fits[::-1, ::-1].argmax())
        return ends.start + at // choices, at % choices

    def _replicas_of(self, choice: int) -> int:
        return int(self.search.replicas[choice])


def _find_split(left: Depths, right: Depths, devices: int, depth: int) -> int | None:
    """Devices for `left` so that the deeper of both is `depth`."""
    for own in range(devices + 1):
        if max(left[own], right[devices - own]) == depth:
            return own
    return None


def _split_devices(left: Depths, right: Depths, devices: int) -> int:
    """Devices for `left` so that the deeper of both is as small as can be."""
    return min(range(devices + 1), key=lambda own: max(left[own], right[devices - own]))


@dataclass(frozen=True, slots=True)
class GraphPartition:
    """Stages whose periods meet a target, with the longest of these periods."""

    costs: StageCosts
    stages: tuple[RetracedStage, ...]
    bottleneck_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class TargetSolution:
    """The partition that a target admits, and its solution; other partitions may be as shallow."""

    partition: GraphPartition
    search: Feasibility
    solved: ChainDepths

    def partitions(self) -> list[GraphPartition]:
        """Partitions of that target and depth, one for each preference among equal stages, without repetitions."""
        found = [self.partition]
        for prefer in OTHERS:
            other = _partition_of(self.search, self.solved, self.partition.costs, prefer)
            if all(other.stages != partition.stages for partition in found):
                found.append(other)
        return found


OTHERS: tuple[Prefer, ...] = ("last", "short")


class TargetSearch:
    """Searches the space of one chain at one micro-batch size.

    live: limits by memory alone.
    """

    def __init__(self, chain: OperatorChain, costs: StageCosts, live: Depths, devices: int) -> None:
        self.chain, self.costs, self.live, self.devices = chain, costs, live, devices
        self.calls = self.states = self.transitions = 0

    def within(self, target_ns: int | None) -> TargetSolution | None:
        """The shallowest stages with periods of at most the target (None: any); None where there are none."""
        limits = self.live
        if target_ns is not None:
            limits = np.where(self.costs.period_ns <= target_ns, limits, 0).astype(np.int32)
        search = Feasibility(limits, self.costs.replicas, self.devices)
        solved = search.behind(self.chain, 0)
        self.calls += 1
        found = None
        if solved.at(0)[self.devices] < UNREACHED:
            found = TargetSolution(_partition_of(search, solved, self.costs, "first"), search, solved)
        self.states += search.states
        self.transitions += search.transitions
        return found

    def smallest(
        self, least_ns: int, tolerance: float, stop: Callable[[], bool] = lambda: False
    ) -> GraphPartition | None:
        """The smallest bottleneck within a factor of 1 + tolerance; None when no plan fits in memory.

        least_ns: a lower bound on the bottleneck.
        stop: called before each further step.

        The search bisects the ratio of the targets that worked and failed. A success lowers the upper end to the
        bottleneck of its plan.
        """
        found = self.within(None)
        best = None if found is None else found.partition
        while best is not None and best.bottleneck_ns > least_ns * (1 + tolerance) and not stop():
            middle = int((least_ns * best.bottleneck_ns) ** 0.5)
            target = min(max(middle, least_ns), best.bottleneck_ns - 1)
            found = self.within(target)
            if found is None:
                least_ns = target + 1
            else:
                best = found.partition
        return best

    def near(self, best: GraphPartition, share: float) -> list[GraphPartition]:
        """Other partitions for three targets: the smallest bottleneck, that share above it, and half way."""
        found: list[GraphPartition] = []
        targets = (int(best.bottleneck_ns * (1 + part * share)) for part in (0, 0.5, 1))
        for target in dict.fromkeys(targets):
            within = self.within(target)
            assert within is not None
            for partition in within.partitions():
                if all(partition.stages != other.stages for other in (best, *found)):
                    found.append(partition)
        return found


def _partition_of(search: Feasibility, solved: ChainDepths, costs: StageCosts, prefer: Prefer) -> GraphPartition:
    stages = Retrace(search, costs.period_ns, prefer).from_position(solved, 0, search.devices).stages
    return GraphPartition(costs, stages, max(int(costs.period_ns[stage.slot, stage.choice]) for stage in stages))
