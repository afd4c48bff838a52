"""Plans whose micro-batch sizes are in a range for each operator, and the fewest devices that they need in a time.

What is live, and how long it stays, depends on the sizes of micro-batches of all operators together. So the sizes
are divided into boxes: a range for each operator.
Docs: cost-model.md, section 11, "Groups".
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
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
    GroupTables,
)
from pipebench.bounds.by_group.partition import Flow, Groups, Table, devices_that_might_do, fewest_of_sets
from pipebench.bounds.by_group.rounds import Rounds, devices_of_sets
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
        self.order = np.array([position[one] for one in graph.topological if one in position], np.int64)
        self._reads = np.zeros((len(chosen), len(chosen)), np.int64)
        for at, one in enumerate(chosen):
            self._reads[at, [position[each] for each in graph.predecessors[one] if each in position]] = 1
        self._from_the_end, self._is_read = self.order[::-1].copy(), self._reads.T.copy()
        self.makers = np.array([position[graph.producers[tensor]] for tensor in self.crossing.values()], np.int64)
        self.ends = np.array(
            [sum(1 << position[each] for each in _ends(tables, tensor)) for tensor in self.crossing.values()],
            np.int64,
        )
        self.buffered = (self.at_once | (tables.problem.regime.mode == "async")).astype(np.int64)

    def longest(self, each: IntArray, behind: bool = False) -> IntArray:
        """Of each operator the longest sum along a path to it, or from it, itself left out."""
        return self.longest_with(each, 0 * each, behind)

    def longest_with(self, each: IntArray, once: IntArray, behind: bool = False) -> IntArray:
        """The same where one operator of a path counts `once` instead, with all that is further away."""
        if behind:
            return _longest(self._from_the_end, self._is_read, each, once)
        return _longest(self.order, self._reads, each, once)


@kernel
def _longest(order: IntArray, ahead: IntArray, each: IntArray, once: IntArray) -> IntArray:
    """See `Graph.longest_with`. ahead: of each two operators whether the second one is right before the first."""
    found = np.zeros(len(order), np.int64)
    for one in order:
        for other in range(len(order)):
            if ahead[one, other]:
                found[one] = max(found[one], each[other] + found[other], once[other])
    return found


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


class CaseTables:
    """The groups of a case, and the boxes of sizes that its plans have.

    rows: of all groups, one after the other, in each operator by operator; shape (columns, rows).
    operator, turns, size, runs: of each row; size of its micro-batches, runs on the first replica, in a pattern on
    all. devices: of each group.
    looked_at: rows times sets of operators of all boxes that were looked at so far.
    """

    def __init__(self, graph: Graph, case: Case) -> None:
        self.graph, self.case = graph, case
        samples = graph.tables.problem.mini_batch // case.copies
        self.sizes = [case.micro_batch] if case.pattern else divisors(samples)
        self.most_devices = graph.tables.devices // case.copies
        count = len(graph.order)
        self.looked_at, self.whole = 0, Box((self.sizes[0],) * count, (self.sizes[-1],) * count)
        each = [[len(rows) for rows in group.rows] for group in case.groups]
        of_groups = [sum(rows) for rows in each]
        self.each_look = sum(of_groups) << count
        self.devices = np.array([group.devices for group in case.groups], np.int64)
        self.operator = np.repeat(np.tile(np.arange(count), len(each)), np.ravel(each))
        self.turns = np.repeat(np.array([group.turns for group in case.groups], np.int64), of_groups)
        every = [(group, row) for group in case.groups for rows in group.rows for row in rows]
        self.rows = rows = np.array([row for _, row in every], np.int64).reshape(-1, CUT + 1).T.copy()
        self.size = np.array([group.sizes[row[CUT]] for group, row in every], np.int64)
        runs = samples // np.maximum(self.size, 1)
        self.runs = runs if case.pattern else -(-runs // self.turns)
        sent = [[group.cuts[row[CUT]][tensor] for tensor in graph.crossing] for group, row in every]
        cuts = np.array(sent, np.int64).reshape(len(every), len(graph.crossing), READ_NS + 1)
        cuts = cuts.transpose(2, 0, 1).copy()
        self.table = Table(
            first=np.cumsum([0, *np.ravel(each)]),
            time_ns=rows[[WHOLE] if case.pattern else [WHOLE, CROSSING]],
            round_ns=(0 if case.pattern else 1) * (rows[FORWARD] + rows[BACK]),
            held_bytes=rows[STATE],
            made_bytes=cuts[MADE_BYTES],
            read_bytes=cuts[READ_BYTES],
            made_ns=cuts[MADE_NS],
            read_ns=cuts[READ_NS],
        )


class BoxTables:
    """A box of a case, and which sets its groups are known to hold in which times.

    inside: that it is a part of: what that one does not hold it does not hold either.
    """

    def __init__(self, case: CaseTables, box: Box, inside: "BoxTables | None" = None) -> None:
        self.case, self.box = case, box
        shape = len(case.devices), 1 << len(case.graph.order)
        lacks: IntArray = np.full(shape, -1) if inside is None else inside._groups.lacks.copy()
        self._groups: Groups = Groups(case.devices, np.full(shape, NEVER), lacks)

    def possible(self, time_ns: int, room_ns: int) -> bool:
        """Whether the devices that there are hold all operators. In less time a group never holds more."""
        if not np.bincount(self._every[0], minlength=len(self.box.least)).all():
            return False
        case, memory = self.case, self.case.graph.tables.free_bytes
        case.looked_at += case.each_look
        limits = time_ns, room_ns, memory
        might = devices_that_might_do(self._flow, self._table, self._groups, *limits)
        rest = self._fewest(might)
        if rest is None:
            return False
        most = case.most_devices - rest[::-1]  # on a group of a set: all other operators need the rest
        needed = devices_of_sets(self._flow, self._table, self._rounds, self._groups, most, *limits)
        return self._fewest(needed) is not None

    def _fewest(self, needed: IntArray) -> IntArray | None:
        """Of each set of operators the fewest devices that hold it together; None where those that there are do
        not hold all, in a plan of the case. needed: see `fewest_of_sets`.
        """
        least, with_several = fewest_of_sets(needed)
        of_all = (least if self.case.case.alone else with_several)[-1]
        return least if of_all <= self.case.most_devices else None

    @cached_property
    def single_ns(self) -> list[int]:
        """Of each operator the least forward and input gradient of a micro-batch."""
        each: list[int] = self._least(self._every[3] + self._every[4]).tolist()
        return each

    @cached_property
    def _live(self) -> IntArray:
        """Samples of each operator that are live at the instant, at least; 0 where nothing has to be."""
        graph, least = self.case.graph, np.array(self.box.least)
        others = (graph.behind | np.eye(len(least), dtype=np.int64)) * graph.at_once
        live: IntArray = (others * least).max(axis=1) * graph.at_once
        return live

    @cached_property
    def _held_bytes(self) -> IntArray:
        """Of each row what is held at the instant; more than there is of rows outside of the box."""
        case, least, most = self.case, np.array(self.box.least), np.array(self.box.most)
        graph, size, rows = case.graph, case.size, case.rows
        live = self._live[case.operator]
        samples = np.minimum(live, 1) * (size if case.case.pattern else np.maximum(live, size))
        at_once = _in_turn(samples, size, case.turns)
        held = rows[STATE] + rows[SAVED] * np.where(rows[FULL] == 1, at_once, np.minimum(at_once, 1))
        outside = (size < least[case.operator]) | (size > most[case.operator])
        found: IntArray = np.where(outside, graph.tables.free_bytes + 1, held)
        return found

    @cached_property
    def _every(self) -> IntArray:
        """All rows that a device has memory for: operator, size, turns, forward, input gradient."""
        case = self.case
        columns = case.operator, case.size, case.turns, case.rows[FORWARD], case.rows[BACK]
        return np.stack(columns)[:, self._held_bytes <= case.graph.tables.free_bytes]

    def _least(self, values: IntArray) -> IntArray:
        """Of each operator the least value of its rows among all."""
        found = np.full(len(self.box.least), NEVER)
        np.minimum.at(found, self._every[0], values)
        return found

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
    def _table(self) -> Table:
        return self.case.table._replace(held_bytes=self._held_bytes)

    @cached_property
    def _rounds(self) -> Rounds:
        case, rows = self.case, self.case.rows
        between = np.zeros((len(case.sizes), len(self.box.least)), np.int64)
        for at, size in enumerate(case.sizes):
            if min(self.box.least) <= size <= max(self.box.most):
                between[at] = self._between_ns(size)
        return Rounds(
            state_bytes=rows[STATE],
            saved_bytes=rows[SAVED],
            full=rows[FULL],
            size=case.size,
            runs=case.runs,
            turns=case.turns,
            stay_ns=rows[FORWARD] + rows[BACK] + between[np.searchsorted(case.sizes, case.size), case.operator],
            apart_ns=np.maximum(rows[FORWARD], rows[BACK]),
            start_ns=self._start_ns,
            end_ns=self._end_ns,
            behind=case.graph.behind,
            pattern=int(case.case.pattern),
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
