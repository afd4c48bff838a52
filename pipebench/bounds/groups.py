"""A lower bound on time: operators as wholes on groups of devices, each within time and memory.

A group of devices holds its stages for all of a mini-batch: their time, their state, what they save of the samples
that are under way at one instant, and buffers for tensors that cross to other groups. Where no division of all
operators into such groups takes the devices that there are, no plan takes so little time.
Docs: cost-model.md, section 11, "Groups".
"""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from pipebench.bounds.group_tables import (
    CROSSING,
    CUT,
    LIVE,
    MADE_BYTES,
    MADE_NS,
    READ_BYTES,
    READ_NS,
    ROUND,
    STATE,
    WHOLE,
    Case,
    Group,
    GroupTables,
    groups_of,
    kinds_of,
)
from pipebench.bounds.operators import devices_of_a_plan
from pipebench.bounds.partition import TOO_MANY, Flow, Table, fewest_devices, sets_held
from pipebench.bounds.proof import TimeProof, replicated_proof
from pipebench.bounds.search import MOST_RISE
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


@dataclass(frozen=True, slots=True)
class GroupsProof:
    """No plan takes less than `claimed_ns`. `certificates.group_check` checks it.

    devices: that a plan uses, at most. memory_bytes: of one of them.
    every_ns: what each runs once a mini-batch whatever it holds.
    operators: those that count, by their positions in the graph. last: one of them that nothing reads from.
    forward_ns, back_ns: of each operator of the graph for one micro-batch, its forward and its input gradient; 0
    where nobody waits for it.
    cases: all of them (`pipebench.bounds.group_tables`).
    several: that plans of several pipelines on the same devices take no less; None where there are none.
    """

    claimed_ns: int
    devices: int
    memory_bytes: int
    every_ns: int
    operators: tuple[int, ...]
    last: int
    forward_ns: tuple[int, ...]
    back_ns: tuple[int, ...]
    cases: tuple[Case, ...]
    several: TimeProof | None = None

    def document(self) -> dict[str, Any]:
        """As JSON has it; without `several`."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        del content["several"]
        return content


def groups_proof(problem: Problem, every_ns: int, time_ns: int) -> GroupsProof | None:
    """The proof of the largest time from groups that is above `time_ns`. None where there is none.

    For small problems on devices of one type. every_ns: what each device runs once a mini-batch.
    """
    if len(set(problem.cluster.devices)) > 1 or not _is_small(problem):
        return None
    tables = GroupTables(problem)
    if tables.free_bytes <= 0:
        return None
    divisions = [Division(tables, last, every_ns) for last in tables.lasts]
    best, claimed = divisions[0], time_ns
    for division in divisions:
        raised = division.raised(claimed)
        if raised > claimed:
            best, claimed = division, raised
    several = None
    if claimed > time_ns and several_pipelines(problem):
        several = replicated_proof(problem, claimed)
        claimed = 0 if several is None else several.claimed_ns
    if claimed <= time_ns:
        return None
    return GroupsProof(
        claimed_ns=claimed,
        devices=tables.devices,
        memory_bytes=tables.free_bytes,
        every_ns=every_ns,
        operators=tables.operators,
        last=best.last,
        forward_ns=tuple(tables.forward_ns.tolist()),
        back_ns=tuple(tables.back_ns.tolist()),
        cases=best.cases,
        several=several,
    )


def several_pipelines(problem: Problem) -> bool:
    """Whether a plan may have several pipelines on the same devices: then each operator has replicas in them."""
    replicas = problem.pins.data_parallel
    return problem.regime.mode == "sync" and replicas != 1 and min(problem.cluster.size, problem.mini_batch) > 1


def _is_small(problem: Problem) -> bool:
    graph = problem.profile.graph
    moving = [operator for operator in range(len(graph.operators)) if not graph.operators[operator].constant]
    devices, samples = devices_of_a_plan(problem), problem.mini_batch
    if not 0 < len(moving) <= MOST_OPERATORS or devices > MOST_DEVICES or samples > MOST_SAMPLES:
        return False
    kinds = kinds_of(samples, devices, problem.regime.mode == "async")
    groups = sum(len(groups_of(devices // kind.copies)) for kind in kinds)
    groups *= sum(not graph.successors[operator] for operator in moving)
    return groups <= MOST_GROUPS and groups << len(moving) <= MOST_SETS


class Division:
    """Whether the operators of a problem can be divided among its devices in a time.

    last: the operator whose first forward ends at the instant that memory is looked at.
    """

    def __init__(self, tables: GroupTables, last: int, every_ns: int) -> None:
        self.last, self.cases = last, tables.cases(last)
        self._tables, self._every_ns = tables, every_ns
        self._orders, self._patterns = flow_of(tables, last, pattern=False), flow_of(tables, last, pattern=True)
        self._cases = [_CaseTables(tables, case) for case in self.cases]

    def raised(self, time_ns: int) -> int:
        """The largest time that is found to be needed, at least `time_ns`, which it is where none seems to fit."""
        if self.possible(time_ns):
            return time_ns
        low, step = time_ns, max(1, time_ns // 16)
        while not self.possible(low + step):
            low, step = low + step, 2 * step
            if low > MOST_RISE * max(time_ns, 1):
                return time_ns
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            if self.possible(middle):
                high = middle
            else:
                low = middle
        return low + 1

    def possible(self, time_ns: int) -> bool:
        """Whether some case is not ruled out; the one that was not the last time is looked at first."""
        for position, case in enumerate(self._cases):
            flow = self._patterns if case.pattern else self._orders
            if case.fewest(flow, time_ns, time_ns - self._every_ns) <= self._tables.devices // case.copies:
                self._cases.insert(0, self._cases.pop(position))
                return True
        return False


def flow_of(tables: GroupTables, last: int, pattern: bool) -> Flow:
    """What the graph says of sets of operators that count, in an order or in a pattern."""
    graph, chosen = tables.graph, list(tables.operators)
    position = {operator: at for at, operator in enumerate(chosen)}
    tensors = tensors_that_cross(tables)
    both = tables.forward_ns + tables.back_ns
    start, end = (before_each(graph, lengths)[chosen] for lengths in (tables.forward_ns, tables.back_ns))
    waits = [_least_of_sets(start), _least_of_sets(start) + _least_of_sets(end)]
    sync = tables.problem.regime.mode == "sync"
    return Flow(
        makers=np.array([position[graph.producers[tensor]] for tensor in tensors.values()], np.int64),
        ends=np.array([sum(1 << position[each] for each in _ends(tables, x)) for x in tensors.values()], np.int64),
        buffered=np.where(sync, tables.before(last)[chosen], 1),
        above_ns=(0 if pattern else 1) * before_each(graph, both)[chosen],
        here_ns=(0 if pattern else 1) * both[chosen],
        below_ns=(0 if pattern else 1) * _behind_each(tables, both)[chosen],
        waits_ns=np.stack([0 * waits[0]] if pattern else waits),
    )


def tensors_that_cross(tables: GroupTables) -> dict[int, int]:
    """Tensors that one operator that counts makes and others read: their positions in the graph, by those among
    all that operators make.
    """
    return {
        at: tensor
        for at, tensor in enumerate(tables.made)
        if len(_ends(tables, tensor)) > 1 and _ends(tables, tensor) <= set(tables.operators)
    }


def _ends(tables: GroupTables, tensor: int) -> set[int]:
    return {tables.graph.producers[tensor], *tables.graph.consumers[tensor]}


def _behind_each(tables: GroupTables, lengths: IntArray) -> IntArray:
    """For each operator the longest sum along a path from it, itself left out."""
    graph, each = tables.graph, lengths.tolist()
    below = [0] * len(each)
    for operator in reversed(graph.topological):
        for behind in graph.successors[operator]:
            below[operator] = max(below[operator], below[behind] + each[behind])
    return np.array(below, np.int64)


class _CaseTables:
    """The groups of a case, and which sets they are known to hold in which times."""

    def __init__(self, tables: GroupTables, case: Case) -> None:
        self.copies, self.pattern = case.copies, case.pattern
        self._memory_bytes = tables.free_bytes
        self._sets = 1 << len(tables.operators)
        crossing = list(tensors_that_cross(tables))
        self._groups = [(group.devices, _table(group, crossing, case.pattern)) for group in case.groups]
        self._holds = np.full((len(case.groups), self._sets), np.iinfo(np.int64).max)
        self._lacks = np.full((len(case.groups), self._sets), -1)

    def fewest(self, flow: Flow, time_ns: int, room_ns: int) -> int:
        """The fewest devices that hold all operators. In less time a group never holds more."""
        needed = np.full(self._sets, TOO_MANY, np.int64)
        for at, (devices, table) in enumerate(self._groups):
            holds, lacks = self._holds[at], self._lacks[at]
            known = np.where(holds <= time_ns, 1, np.where(lacks >= time_ns, 0, -1))
            held = sets_held(flow, table, known, time_ns, room_ns, self._memory_bytes) == 1
            holds[held] = np.minimum(holds[held], time_ns)
            lacks[~held] = np.maximum(lacks[~held], time_ns)
            needed[held] = np.minimum(needed[held], devices)
        return fewest_devices(needed)


def _table(group: Group, crossing: list[int], pattern: bool) -> Table:
    """A group for `sets_held`. crossing: numbers of tensors."""
    rows = np.array([row for each in group.rows for row in each], np.int64).reshape(-1, CUT + 1)
    each = [[sent[tensor] for tensor in crossing] for sent in group.cuts]
    cuts = np.array(each, np.int64).reshape(len(each), len(crossing), READ_NS + 1)[rows[:, CUT]]
    return Table(
        first=np.cumsum([0, *map(len, group.rows)]),
        time_ns=rows[:, [WHOLE] if pattern else [WHOLE, CROSSING]],
        round_ns=rows[:, ROUND],
        held_bytes=rows[:, STATE] + rows[:, LIVE],
        made_bytes=cuts[:, :, MADE_BYTES],
        read_bytes=cuts[:, :, READ_BYTES],
        made_ns=cuts[:, :, MADE_NS],
        read_ns=cuts[:, :, READ_NS],
    )


def _least_of_sets(values: IntArray) -> IntArray:
    """Of each set of operators the least value; 0 of the empty one."""
    found = np.full(1, np.iinfo(np.int64).max)
    for value in values:
        found = np.concatenate([found, np.minimum(found, value)])
    found[0] = 0
    return found
