"""A lower bound on time: operators as wholes on groups of devices, each within time and memory.

A group of devices holds its stages for all of a mini-batch: their time, their state, what they save of the samples
that are under way at one instant, and buffers for tensors that cross to other groups. Memory says how many
micro-batches are live at once, and so how long all of them take. Where no division of all operators into such
groups takes the devices that there are, no plan takes so little time.
Docs: cost-model.md, section 11, "Groups".
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

import msgspec

from pipebench.bounds.by_group.boxes import BoxTables, CaseTables, Graph
from pipebench.bounds.by_group.group_tables import Case, GroupTables, groups_of
from pipebench.bounds.operators import devices_of_a_plan, divisors
from pipebench.bounds.proof import TimeProof, replicated_proof
from pipebench.bounds.search import MOST_RISE
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
MOST_BOXES = 64
"""Into which the sizes of micro-batches of one case are divided."""
MOST_LOOKED_AT = 60_000_000
"""Rows times sets of operators, of all boxes, in a second or less: then no size is divided any more."""
FINE = 10
"""Boxes are compared by times that are known to one part in 2^FINE."""
Splits = tuple[Any, ...]
"""How sizes of micro-batches are divided: not, or by an operator and a size; then the splits on both sides."""


@dataclass(frozen=True, slots=True)
class GroupsProof:
    """No plan takes less than `claimed_ns`. `certificates.group_check` checks it.

    devices: that a plan uses, at most. memory_bytes: of one of them.
    every_ns: what each runs once a mini-batch whatever it holds.
    operators: those that count, by their positions in the graph. last: one of them that nothing reads from.
    cases: all of them (`pipebench.bounds.by_group.group_tables`). splits: of each case.
    several: that plans of several pipelines on the same devices take no less; None where there are none.
    """

    claimed_ns: int
    devices: int
    memory_bytes: int
    every_ns: int
    operators: tuple[int, ...]
    last: int
    cases: tuple[Case, ...]
    splits: tuple[Splits, ...]
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
    if len(set(problem.cluster.devices)) > 1 or not is_small(problem):
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
        cases=best.cases,
        splits=best.splits(claimed - 1),
        several=several,
    )


def several_pipelines(problem: Problem) -> bool:
    """Whether a plan may have several pipelines on the same devices: then each operator has replicas in them."""
    replicas = problem.pins.data_parallel
    return problem.regime.mode == "sync" and replicas != 1 and min(problem.cluster.size, problem.mini_batch) > 1


def is_small(problem: Problem) -> bool:
    """Whether all sets of operators can be looked at."""
    graph = problem.profile.graph
    moving = [operator for operator in range(len(graph.operators)) if not graph.operators[operator].constant]
    devices, samples = devices_of_a_plan(problem), problem.mini_batch
    if not 0 < len(moving) <= MOST_OPERATORS or devices > MOST_DEVICES or samples > MOST_SAMPLES:
        return False
    patterns = 2 if problem.regime.mode == "async" else 1
    groups = sum(
        patterns * len(divisors(samples // copies)) * len(groups_of(devices // copies))
        for copies in divisors(samples)
        if copies <= devices
    )
    groups *= sum(not graph.successors[operator] for operator in moving)
    return groups <= MOST_GROUPS and groups << len(moving) <= MOST_SETS


class Division:
    """Whether the operators of a problem can be divided among its devices in a time.

    last: the operator whose first forward ends at the instant that memory is looked at.
    """

    def __init__(self, tables: GroupTables, last: int, every_ns: int) -> None:
        self.last, self.cases = last, tables.cases(last)
        graph = Graph(tables, last)
        self._trees = [_Tree(CaseTables(graph, case), every_ns) for case in self.cases]

    def splits(self, time_ns: int) -> tuple[Splits, ...]:
        """Of each case those by which a time was found to be too short."""
        return tuple(tree.root.splits(time_ns) for tree in self._trees)

    def raised(self, time_ns: int) -> int:
        """The largest time that is found to be needed, at least `time_ns`, which it is where none seems to fit."""
        most = MOST_RISE * max(time_ns, 1)
        found = most + 1
        for tree in sorted(self._trees, key=lambda tree: not tree.root.possible(time_ns)):
            found = tree.raised(time_ns, found, self._looked_at)
            if found <= time_ns:
                return time_ns
        return time_ns if found > most else found

    def _looked_at(self) -> int:
        return sum(tree.case.looked_at for tree in self._trees)

    def possible(self, time_ns: int) -> bool:
        """Whether some case is not ruled out without its sizes being divided."""
        return any(tree.root.possible(time_ns) for tree in self._trees)


@dataclass
class _Node:
    """A box. below_ns: a time that is too short."""

    tables: BoxTables
    every_ns: int
    below_ns: int = -1
    operator: int = -1
    size: int = 0
    parts: list["_Node"] = field(default_factory=list)

    def possible(self, time_ns: int) -> bool:
        return self.tables.possible(time_ns, time_ns - self.every_ns)

    def raise_to(self, time_ns: int, fine_ns: int) -> bool:
        """Raises what is too short, up to a time, to `fine_ns` of what suffices; whether a time below it does."""
        step = max(fine_ns, 1)
        high = self.below_ns + step
        while high < time_ns and not self.possible(high):
            self.below_ns, step = high, 2 * step
            high = self.below_ns + step
        if high >= time_ns:
            high = time_ns
            if high - 1 <= self.below_ns or not self.possible(high - 1):
                self.below_ns = max(self.below_ns, high - 1)
                return False
            high -= 1
        while high - self.below_ns > fine_ns:
            middle = (self.below_ns + high) // 2
            if self.possible(middle):
                high = middle
            else:
                self.below_ns = middle
        return True

    def splits(self, time_ns: int) -> Splits:
        """As a proof has them that a time is too short."""
        if not self.parts or self.below_ns >= time_ns:
            return ()
        return (self.operator, self.size, *(part.splits(time_ns) for part in self.parts))


class _Tree:
    """The boxes of a case."""

    def __init__(self, case: CaseTables, every_ns: int) -> None:
        self.case, self._every_ns = case, every_ns
        self.root = _Node(BoxTables(case, case.whole), every_ns)

    def raised(self, time_ns: int, most_ns: int, looked_at: Callable[[], int]) -> int:
        """The largest time that is found to be needed, at least `time_ns`; not above `most_ns`.

        The box that needs the least time is divided, as long as one can be. looked_at(): in all cases so far.
        """
        self.root = _Node(self.root.tables, self._every_ns, time_ns - 1)
        fine_ns, order, boxes = max(1, time_ns >> FINE), count(), 1
        if not self.root.raise_to(most_ns, fine_ns):
            return most_ns
        open_boxes = [(self.root.below_ns, next(order), self.root, fine_ns)]
        while open_boxes:
            _, _, node, fine = heappop(open_boxes)
            split = self._split(node) if boxes < MOST_BOXES and looked_at() < MOST_LOOKED_AT else None
            if split is None:
                if fine == 1:
                    return node.below_ns + 1
                if node.raise_to(most_ns, 1):
                    heappush(open_boxes, (node.below_ns, next(order), node, 1))
                continue
            boxes += 1
            node.operator, node.size = split
            following = self.case.sizes[self.case.sizes.index(node.size) + 1]
            for box in node.tables.box.split(node.operator, node.size, following):
                part = _Node(BoxTables(self.case, box, node.tables), self._every_ns, node.below_ns)
                node.parts.append(part)
                if part.raise_to(most_ns, fine_ns):
                    heappush(open_boxes, (part.below_ns, next(order), part, fine_ns))
        return most_ns

    def _split(self, node: _Node) -> tuple[int, int] | None:
        """The operator whose sizes are divided, and the largest of the smaller ones; None where all are known.

        The last operator first: all others have to have something live for it. Then the one that takes longest, of
        those that may have the smallest size.
        """
        box, graph = node.tables.box, self.case.graph
        known = [least == most for least, most in zip(box.least, box.most, strict=True)]
        if all(known):
            return None
        first = graph.tables.operators.index(graph.last)
        if known[first]:
            ns = node.tables.single_ns
            first = max(
                (operator for operator in range(len(known)) if not known[operator]),
                key=lambda operator: (box.least[operator] == self.case.sizes[0], ns[operator]),
            )
        return first, box.least[first]
