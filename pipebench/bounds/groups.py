"""A lower bound on time without a flush: operators as wholes on groups of devices, each within time and memory.

A group of devices holds its stages for all of a mini-batch: their time, their state, what one micro-batch saves in
them, and buffers for tensors that cross to other groups. Where no division of all operators into such groups takes
the devices that there are, no plan takes so little time. Docs: cost-model.md, section 11, "Groups".
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipebench.bounds.choices import LOSS
from pipebench.bounds.group_tables import CROSSING, LIVE, STATE, WHOLE, Case, GroupTables, cases_of, groups_of
from pipebench.bounds.operators import devices_of_a_plan
from pipebench.bounds.partition import fewest_devices
from pipebench.bounds.search import CLOSE, MOST_RISE
from pipebench.bounds.spine import before_each
from pipebench.costs.quantise import IntArray
from pipebench.domain.problem import Problem

MOST_OPERATORS = 10
"""Of problems with more, sets of operators are too many to look at."""
MOST_SAMPLES = 1 << 20
"""Of a mini-batch: all its divisors are looked at."""
MOST_DEVICES = 32
MOST_GROUPS = 1000
"""Of all cases."""
MOST_SETS = 400_000
"""Sets of operators on all groups of all cases that are looked at."""
WEIGHTS = (1, 0), (0, 1), (1, 1), (2, 1), (1, 2), (3, 1), (1, 3)
"""Of time and memory in the sums that a group must keep to."""
UNIT = 1 << 30
"""All time, and all memory, of a device in sums."""
MOST = 1 << 34
"""What costs more in a sum fits nowhere."""


@dataclass(frozen=True, slots=True)
class GroupsProof:
    """No plan takes less than `claimed_ns`. `certificates.group_check` checks it.

    devices: that a plan uses, at most. memory_bytes: of one of them.
    every_ns: what each runs once a mini-batch whatever it holds.
    operators: those that count, by their positions in the graph.
    forward_ns, back_ns: of each operator of the graph for one micro-batch, its forward and its input gradient; 0
    where nobody waits for it.
    cases: all of them (`pipebench.bounds.group_tables`).
    """

    claimed_ns: int
    devices: int
    memory_bytes: int
    every_ns: int
    operators: tuple[int, ...]
    forward_ns: tuple[int, ...]
    back_ns: tuple[int, ...]
    cases: tuple[Case, ...]

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def groups_proof(problem: Problem, every_ns: int, time_ns: int) -> GroupsProof | None:
    """The proof of the largest time from groups that is above `time_ns`. None where there is none.

    For small problems without a flush, on devices of one type. every_ns: what each device runs once a mini-batch.
    """
    if problem.regime.mode == "sync" or len(set(problem.cluster.devices)) > 1 or not _is_small(problem):
        return None
    tables = GroupTables(problem)
    if tables.free_bytes <= 0:
        return None
    division = Division(tables, every_ns)
    claimed = division.raised(time_ns)
    if claimed == time_ns:
        return None
    return GroupsProof(
        claimed_ns=claimed,
        devices=tables.devices,
        memory_bytes=tables.free_bytes,
        every_ns=every_ns,
        operators=tables.operators,
        forward_ns=tuple(tables.forward_ns.tolist()),
        back_ns=tuple(tables.back_ns.tolist()),
        cases=tables.cases,
    )


def _is_small(problem: Problem) -> bool:
    moving = sum(not operator.constant for operator in problem.profile.graph.operators)
    devices, samples = devices_of_a_plan(problem), problem.mini_batch
    if not 0 < moving <= MOST_OPERATORS or devices > MOST_DEVICES or samples > MOST_SAMPLES:
        return False
    groups = [len(groups_of(devices // copies)) for copies, _ in cases_of(samples, devices)]
    return sum(groups) <= MOST_GROUPS and sum(groups) << moving <= MOST_SETS


class Division:
    """Whether the operators of a problem can be divided among its devices in a time."""

    def __init__(self, tables: GroupTables, every_ns: int) -> None:
        self._tables, self._every_ns = tables, every_ns
        self._graph = tables.problem.profile.graph
        self._cases = [_Arrays(tables, case) for case in tables.cases]

    def raised(self, time_ns: int) -> int:
        """The largest time that is found to be needed, at least `time_ns`, which it is where none seems to fit."""
        if self._possible(time_ns):
            return time_ns
        low, step = time_ns, max(1, time_ns // 16)
        while not self._possible(low + step):
            low, step = low + step, 2 * step
            if low > MOST_RISE * max(time_ns, 1):
                return time_ns
        high = low + step
        while high - low > max(1, CLOSE * low):
            middle = (low + high) // 2
            if self._possible(middle):
                high = middle
            else:
                low = middle
        return low + 1

    def _possible(self, time_ns: int) -> bool:
        """Whether some case is not ruled out; the one that was not the last time is looked at first."""
        for position, case in enumerate(self._cases):
            if (case.pattern or self._longest_ns <= time_ns) and self._fits(case, time_ns):
                self._cases.insert(0, self._cases.pop(position))
                return True
        return False

    def _fits(self, case: "_Arrays", time_ns: int) -> bool:
        time_ns = max(time_ns, 1)
        room = -(-max(time_ns - self._every_ns, -1) * UNIT // time_ns)
        waits = np.floor(self.waits / time_ns * UNIT * (1 - LOSS)).astype(np.int64)
        kinds = [0] if case.pattern else [1, 2]
        costs, weights = case.sums(time_ns, self._last, kinds)
        needed = fewest_devices(costs, case.devices, weights, np.array([room, UNIT]), waits, case.buffers)
        return needed <= self._tables.devices // case.copies

    @cached_property
    def _last(self) -> IntArray:
        """For each operator without successors whether each one that counts is before it or is itself, shape
        (last, operators).
        """
        graph, before = self._graph, [0] * len(self._graph.operators)
        for operator in graph.topological:
            before[operator] = 1 << operator
            for other in graph.predecessors[operator]:
                before[operator] |= before[other]
        sets = [before[operator] for operator, behind in enumerate(graph.successors) if not behind]
        return np.array([[one >> operator & 1 for operator in self._tables.operators] for one in sets], np.int64)

    @cached_property
    def _before(self) -> IntArray:
        return before_each(self._graph, self._tables.forward_ns)

    @cached_property
    def _behind(self) -> IntArray:
        return behind_each(self._tables)

    @cached_property
    def _longest_ns(self) -> int:
        """One sample on its way down a path and back."""
        both = self._tables.forward_ns + self._tables.back_ns
        return int((before_each(self._graph, both) + both).max())

    @cached_property
    def waits(self) -> IntArray:
        """What a device with a set of operators waits: nothing, at the start, at both ends; shape (3, sets)."""
        chosen = list(self._tables.operators)
        start, end = _least_of_sets(self._before[chosen]), _least_of_sets(self._behind[chosen])
        return np.stack([0 * start, start, start + end])


def behind_each(tables: GroupTables) -> IntArray:
    """For each operator the longest sum of input gradients along a path from it, itself left out."""
    graph, back = tables.problem.profile.graph, tables.back_ns.tolist()
    below = [0] * len(back)
    for operator in reversed(graph.topological):
        for behind in graph.successors[operator]:
            below[operator] = max(below[operator], below[behind] + back[behind])
    return np.array(below, np.int64)


class _Arrays:
    """The tables of a case for `fewest_devices`."""

    def __init__(self, tables: GroupTables, case: Case) -> None:
        self.copies, self.pattern = case.copies, case.micro_batch > 0
        self.devices = np.array([group.devices for group in case.groups], np.int64)
        each = [group.rows[operator] for group in case.groups for operator in tables.operators]
        lengths = np.array([len(rows) for rows in each])
        self._some = lengths > 0
        self._first = np.cumsum([0, *lengths[self._some]])[:-1]
        self._rows = np.array([row for rows in each for row in rows], np.float64).reshape(-1, 4)
        self._of = np.repeat(np.arange(len(each)) % len(tables.operators), lengths)
        self._shape = len(case.groups), len(tables.operators)
        self._bytes = tables.free_bytes
        lacking = np.stack([_crossing_bytes(tables, group.buffers) for group in case.groups])
        self.buffers = np.floor(lacking / self._bytes * UNIT * (1 - LOSS)).astype(np.int64)

    def sums(self, time_ns: int, last: IntArray, kinds: list[int]) -> tuple[IntArray, IntArray]:
        """Costs and weights of `fewest_devices`: of each kind of wait, each last operator and each of WEIGHTS."""
        costs, weights = [], []
        scale = UNIT * (1 - LOSS)
        for kind in kinds:
            time = self._rows[:, CROSSING if kind == 2 else WHOLE] / time_ns
            for counted in last:
                memory = (self._rows[:, STATE] + self._rows[:, LIVE] * counted[self._of]) / self._bytes
                for one, other in WEIGHTS:
                    costs.append(self._least(np.floor(np.minimum(one * time + other * memory, 16) * scale)))
                    weights.append((one, other, kind))
        return np.stack(costs), np.array(weights, np.int64)

    def _least(self, each: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> IntArray:
        found = np.full(self._shape[0] * self._shape[1], MOST, np.int64)
        if len(each):
            found[self._some] = np.minimum.reduceat(each, self._first).astype(np.int64)
        return found.reshape(self._shape)


def _least_of_sets(values: IntArray) -> IntArray:
    """Of each set of operators the least value; 0 of the empty one."""
    found = np.full(1, np.iinfo(np.int64).max)
    for value in values:
        found = np.concatenate([found, np.minimum(found, value)])
    found[0] = 0
    return found


def _crossing_bytes(tables: GroupTables, buffers: tuple[int, ...]) -> IntArray:
    """Of each set of operators the bytes of the tensors that one of it makes or reads and one outside reads or
    makes.
    """
    graph, position = tables.problem.profile.graph, {each: at for at, each in enumerate(tables.operators)}
    sets = np.arange(1 << len(tables.operators))
    found = np.zeros(len(sets), np.int64)
    made = [tensor for tensor, producer in enumerate(graph.producers) if producer >= 0]
    for tensor, size in zip(made, buffers, strict=True):
        ends = [graph.producers[tensor], *graph.consumers[tensor]]
        if size and len(ends) > 1 and all(each in position for each in ends):
            bits = sum({1 << position[each] for each in ends})
            found += size * ((sets & bits != 0) & (sets & bits != bits))
    return found
