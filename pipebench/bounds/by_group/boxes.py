"""Plans whose micro-batch sizes are in a range for each operator, and the fewest devices that they need in a time.

What is live, and how long it stays, depends on the sizes of micro-batches of all operators together. So the sizes
are divided into boxes: a range for each operator.
Docs: cost-model.md, section 11, "Groups".
"""

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipebench.bounds.by_group.group_tables import (
    BACK,
    CROSSING,
    CUT,
    FORWARD,
    FULL,
    MADE_BYTES,
    MADE_NS,
    READ_BYTES,
    READ_NS,
    SAVED,
    STATE,
    WHOLE,
    Case,
    Group,
    GroupTables,
)
from pipebench.bounds.by_group.partition import TOO_MANY, Flow, Table, fewest_devices, sets_held
from pipebench.bounds.by_group.rounds import Rounds, sets_in_rounds
from pipebench.bounds.memory import ancestors
from pipebench.bounds.operators import divisors
from pipebench.costs.quantise import IntArray

NEVER = int(np.iinfo(np.int64).max)


class Box(NamedTuple):
    """Of each operator that counts the least and the largest size of the micro-batches of its stage."""

    least: tuple[int, ...]
    most: tuple[int, ...]

    def split(self, operator: int, size: int, following: int) -> tuple["Box", "Box"]:
        """Where an operator's size is at most `size`, and where it is at least the size that follows it."""
        below, above = list(self.most), list(self.least)
        below[operator] = min(below[operator], size)
        above[operator] = max(above[operator], following)
        return Box(self.least, tuple(below)), Box(tuple(above), self.most)


class Graph:
    """What a graph says of operators that count; of each by its position among them.

    last: the operator whose first forward ends at the instant at which memory is looked at.
    """

    def __init__(self, tables: GroupTables, last: int) -> None:
        graph, chosen = tables.graph, list(tables.operators)
        self.tables, self.last, self.crossing = tables, last, tensors_that_cross(tables)
        position = {operator: at for at, operator in enumerate(chosen)}
        above = [ancestors(graph, operator) for operator in chosen]
        self.behind = np.array([[one in before for before in above] for one in chosen], np.int64)
        self.at_once = tables.before(last)[chosen].astype(bool)
        self.order = [position[operator] for operator in graph.topological if operator in position]
        self.ahead = [[position[each] for each in graph.predecessors[one] if each in position] for one in chosen]
        self.after = [[position[each] for each in graph.successors[one] if each in position] for one in chosen]
        self.makers = np.array([position[graph.producers[tensor]] for tensor in self.crossing.values()], np.int64)
        self.ends = np.array(
            [sum(1 << position[each] for each in _ends(tables, tensor)) for tensor in self.crossing.values()],
            np.int64,
        )
        self.buffered = (self.at_once | (tables.problem.regime.mode == "async")).astype(np.int64)

    def longest(self, each: Iterable[int], behind: bool = False) -> IntArray:
        """Of each operator the longest sum along a path to it, or from it, itself left out."""
        lengths, found = list(each), [0] * len(self.order)
        near = self.after if behind else self.ahead
        for one in reversed(self.order) if behind else self.order:
            found[one] = max((lengths[other] + found[other] for other in near[one]), default=0)
        return np.array(found, np.int64)

    def longest_with(self, each: IntArray, once: IntArray, behind: bool = False) -> IntArray:
        """The same where one operator of a path counts `once` instead, with all that is further away."""
        lengths, far, found = each.tolist(), once.tolist(), [0] * len(self.order)
        near = self.after if behind else self.ahead
        for one in reversed(self.order) if behind else self.order:
            found[one] = max((max(lengths[other] + found[other], far[other]) for other in near[one]), default=0)
        return np.array(found, np.int64)


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


class _GroupArrays:
    """The rows of a group. operator, size: of each row."""

    def __init__(self, group: Group, crossing: list[int], case: Case, samples: int) -> None:
        rows = np.array([row for each in group.rows for row in each], np.int64).reshape(-1, CUT + 1)
        self.devices, self.turns, self.rows = group.devices, group.turns, rows
        self.operator = np.repeat(np.arange(len(group.rows)), [len(each) for each in group.rows])
        self.size = np.array(group.sizes, np.int64)[rows[:, CUT]]
        runs = samples // np.maximum(self.size, 1)
        self.runs = runs if case.pattern else -(-runs // group.turns)
        each = [[sent[tensor] for tensor in crossing] for sent in group.cuts]
        cuts = np.array(each, np.int64).reshape(len(each), len(crossing), READ_NS + 1)[rows[:, CUT]]
        self.table = Table(
            first=np.cumsum([0, *map(len, group.rows)]),
            time_ns=rows[:, [WHOLE] if case.pattern else [WHOLE, CROSSING]],
            round_ns=rows[:, FORWARD] + rows[:, BACK] if not case.pattern else 0 * rows[:, FORWARD],
            held_bytes=rows[:, STATE],
            made_bytes=cuts[:, :, MADE_BYTES],
            read_bytes=cuts[:, :, READ_BYTES],
            made_ns=cuts[:, :, MADE_NS],
            read_ns=cuts[:, :, READ_NS],
        )


class CaseTables:
    """The groups of a case, and the boxes of sizes that its plans have.

    looked_at: rows times sets of operators that were looked at so far, in all boxes.
    """

    def __init__(self, graph: Graph, case: Case) -> None:
        self.graph, self.case = graph, case
        samples = graph.tables.problem.mini_batch // case.copies
        self.sizes = [case.micro_batch] if case.pattern else divisors(samples)
        self.devices = graph.tables.devices // case.copies
        self.groups = [_GroupArrays(group, list(graph.crossing), case, samples) for group in case.groups]
        count = len(graph.order)
        self.looked_at = 0
        self.each_look = sum(len(group.rows) for group in self.groups) << count
        self.whole = Box((self.sizes[0],) * count, (self.sizes[-1],) * count)


class BoxTables:
    """A box of a case, and which sets its groups are known to hold in which times.

    inside: that it is a part of: what that one does not hold it does not hold either.
    """

    def __init__(self, case: CaseTables, box: Box, inside: "BoxTables | None" = None) -> None:
        self.case, self.box = case, box
        sets = 1 << len(case.graph.order)
        self._holds = np.full((len(case.groups), sets), NEVER)
        self._lacks: IntArray = np.full((len(case.groups), sets), -1) if inside is None else inside._lacks.copy()

    def possible(self, time_ns: int, room_ns: int) -> bool:
        """Whether the devices that there are hold all operators. In less time a group never holds more."""
        if any(not rows.any() for rows in self._of_operators):
            return False
        case, memory = self.case, self.case.graph.tables.free_bytes
        case.looked_at += case.each_look
        needed = np.full(self._holds.shape[1], TOO_MANY, np.int64)
        for at, group in enumerate(case.groups):
            holds, lacks = self._holds[at], self._lacks[at]
            known = np.where(holds <= time_ns, 1, np.where(lacks >= time_ns, 0, -1))
            table = group.table._replace(held_bytes=self._held_bytes[at])
            held = sets_held(self._flow, table, known, time_ns, room_ns, memory)
            known = np.where((held == 1) & (known < 0), -1, held)
            held = sets_in_rounds(self._flow, table, self._rounds[at], known, time_ns, room_ns, memory)
            holds[held == 1] = np.minimum(holds[held == 1], time_ns)
            lacks[held == 0] = np.maximum(lacks[held == 0], time_ns)
            needed[held == 1] = np.minimum(needed[held == 1], group.devices)
        return fewest_devices(needed, not case.case.alone) <= case.devices

    @cached_property
    def single_ns(self) -> list[int]:
        """Of each operator the least forward and input gradient of a micro-batch."""
        each: list[int] = self._least(self._every[3] + self._every[4]).tolist()
        return each

    @cached_property
    def _live(self) -> IntArray:
        """Samples of each operator that are live at the instant, at least; 0 where nothing has to be."""
        graph, least = self.case.graph, np.array(self.box.least)
        live = [
            max(
                least[other]
                for other in range(len(least))
                if graph.at_once[other] and (other == one or behind[other])
            )
            if graph.at_once[one]
            else 0
            for one, behind in enumerate(graph.behind)
        ]
        return np.array(live, np.int64)

    @cached_property
    def _held_bytes(self) -> list[IntArray]:
        """Of each group and row what is held at the instant; more than there is of rows outside of the box."""
        least, most = np.array(self.box.least), np.array(self.box.most)
        memory, found = self.case.graph.tables.free_bytes, []
        for group in self.case.groups:
            size, live = group.size, self._live[group.operator]
            samples = np.minimum(live, 1) * (size if self.case.case.pattern else np.maximum(live, size))
            at_once = _in_turn(samples, size, group.turns)
            rows = group.rows
            held = rows[:, STATE] + rows[:, SAVED] * np.where(rows[:, FULL] == 1, at_once, np.minimum(at_once, 1))
            outside = (size < least[group.operator]) | (size > most[group.operator])
            found.append(np.where(outside, memory + 1, held))
        return found

    @cached_property
    def _every(self) -> IntArray:
        """All rows that a device has memory for: operator, size, turns, forward, input gradient."""
        memory = self.case.graph.tables.free_bytes
        parts = []
        for group, held in zip(self.case.groups, self._held_bytes, strict=True):
            kept = held <= memory
            turns = np.full(len(held), group.turns)
            columns = group.operator, group.size, turns, group.rows[:, FORWARD], group.rows[:, BACK]
            parts.append(np.stack(columns)[:, kept])
        return np.concatenate(parts, axis=1)

    @cached_property
    def _of_operators(self) -> list[IntArray]:
        """Of each operator its rows among all."""
        return [self._every[0] == operator for operator in range(len(self.case.graph.order))]

    def _least(self, values: IntArray) -> IntArray:
        return np.array([values[rows].min() for rows in self._of_operators], np.int64)

    @cached_property
    def _start_ns(self) -> IntArray:
        """Before the first forward of each operator, at least. All samples of it go through those before."""
        _, size, turns, forward, _ = self._every
        found = np.zeros(len(self.box.least), np.int64)
        single, graph = self._least(forward), self.case.graph
        for samples in set(self.box.least):
            several = _in_turn(samples, size, turns) * forward
            ahead = graph.longest(single)
            start = graph.longest_with(single, self._least(several) + ahead)
            found = np.where(np.array(self.box.least) == samples, start, found)
        return found

    def _between_ns(self, samples: int) -> IntArray:
        """Of each operator what passes between its forward and its backward of so many samples, at least."""
        _, size, turns, forward, back = self._every
        graph, single = self.case.graph, self._least(forward + back)
        several = _in_turn(samples, size, turns)
        alone, apart = several * (forward + back), forward + back + (several - 1) * np.maximum(forward, back)
        behind = graph.longest(single, behind=True)
        once = self._least(np.maximum(alone, apart + behind[self._every[0]]))
        return graph.longest_with(single, once, behind=True)

    @cached_property
    def _flow(self) -> Flow:
        graph, pattern = self.case.graph, self.case.case.pattern
        _, _, _, forward, back = self._every
        counted = 0 if pattern else 1
        start, end = self._start_ns, self._end_ns
        waits = [_least_of_sets(start), _least_of_sets(start) + _least_of_sets(end)]
        both = counted * self._least(forward + back)
        return Flow(
            makers=graph.makers,
            ends=graph.ends,
            buffered=graph.buffered,
            above_ns=graph.longest(both),
            here_ns=both,
            below_ns=graph.longest(both, behind=True),
            waits_ns=np.stack([0 * waits[0]] if pattern else waits),
        )

    @cached_property
    def _end_ns(self) -> IntArray:
        return self.case.graph.longest(self._least(self._every[4]))

    @cached_property
    def _stays_ns(self) -> dict[int, IntArray]:
        return {size: self._between_ns(size) for size in self.case.sizes}

    @cached_property
    def _rounds(self) -> list[Rounds]:
        return [self._rounds_of(group) for group in self.case.groups]

    def _rounds_of(self, group: _GroupArrays) -> Rounds:
        rows, pattern = group.rows, self.case.case.pattern
        between = np.zeros(len(rows), np.int64)
        for size, ns in self._stays_ns.items():
            between = np.where(group.size == size, ns[group.operator], between)
        return Rounds(
            state_bytes=rows[:, STATE],
            saved_bytes=rows[:, SAVED],
            full=rows[:, FULL],
            size=group.size,
            runs=group.runs,
            stay_ns=rows[:, FORWARD] + rows[:, BACK] + between,
            apart_ns=np.maximum(rows[:, FORWARD], rows[:, BACK]),
            start_ns=self._start_ns,
            end_ns=self._end_ns,
            behind=self.case.graph.behind,
            turns=group.turns,
            pattern=int(pattern),
        )


def _in_turn(samples: IntArray | int, size: IntArray, turns: IntArray | int) -> IntArray:
    """Micro-batches with some of so many samples, of those of one replica of several in turn at least."""
    micro_batches = -(-samples // size)
    found: IntArray = -(-micro_batches // turns)
    return found


def _least_of_sets(values: IntArray) -> IntArray:
    """Of each set of operators the least value; 0 of the empty one."""
    found = np.full(1, np.iinfo(np.int64).max)
    for value in values:
        found = np.concatenate([found, np.minimum(found, value)])
    found[0] = 0
    return found
