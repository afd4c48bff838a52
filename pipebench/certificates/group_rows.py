"""What a proof from groups of devices says of a problem, and its tables (cost model, section 11, "Groups")."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipebench.certificates.document import MOST_DIGITS, Part, Refused, whole
from pipebench.certificates.problem_premises import Problem, require_order

MOST_OPERATORS = 12
"""That are counted: all sets of them are looked at."""
WHOLE, CROSSING, FORWARD, BACK, STATE, SAVED, FULL, CUT = range(8)
"""What a row says: ns of a mini-batch, the same without weight gradients, ns of the forward and of the input
gradient of one micro-batch, bytes at all times, bytes that one micro-batch saves, whether all that are live hold
them (1) or one does (0), and the number of the stage's micro-batches.
"""
MOST_STEPS = 2 * 10**8
"""Of a check: some minutes. Bounds of ten operators were seen to take five million."""
MADE_BYTES, READ_BYTES, MADE_NS, READ_NS = range(4)
"""What a tensor costs a stage that makes it, and one that reads it, where it crosses to another group."""


@dataclass(frozen=True)
class Row:
    """An operator in a stage on a group.

    at: see WHOLE. size: of the stage's micro-batches. turns: replicas that take them in turn. runs: micro-batches
    of the first replica, in a pattern of all. cut: four numbers of each tensor.
    """

    at: tuple[int, ...]
    size: int
    turns: int
    runs: int
    cut: list[list[int]]

    def times(self, samples: int) -> int:
        """Micro-batches with some of so many samples, of those of one replica at least."""
        micro_batches = -(-samples // self.size)
        return -(-micro_batches // self.turns)

    @property
    def apart(self) -> int:
        """What two forwards, or two input gradients, are apart at least."""
        return max(self.at[FORWARD], self.at[BACK])


@dataclass
class Effort:
    """Steps of a check, for all boxes together: rows, pairs and sets that are looked at."""

    spent: int = 0

    def spend(self, steps: int) -> None:
        """Raises Refused where they are too many."""
        self.spent += steps
        if self.spent > MOST_STEPS:
            raise Refused(
                "content.bound", f"takes more than {MOST_STEPS} steps to check: no proof of the suite does"
            )


@dataclass(frozen=True)
class Counted:
    """What all cases share; operators that are counted by their positions among these.

    operators: those that are counted; a set has bit k for the k-th of them. devices: of a plan.
    memory: bytes of one device. time: ns that do not suffice. room: ns in which a device can run something.
    last: the operator whose first forward ends at the instant at which memory is looked at.
    effort: what the check has taken.
    """

    problem: Problem
    operators: list[int]
    last: int
    devices: int
    memory: int
    time: int
    room: int
    effort: Effort = field(default_factory=Effort)

    @cached_property
    def ahead(self) -> list[set[int]]:
        """The operators that each one waits for."""
        position = {operator: at for at, operator in enumerate(self.operators)}
        before = self.problem.predecessors()
        return [{position[each] for each in before[operator] if each in position} for operator in self.operators]

    @cached_property
    def behind(self) -> list[set[int]]:
        """Those that wait for each."""
        found: list[set[int]] = [set() for _ in self.operators]
        for operator, before in enumerate(self.ahead):
            for other in before:
                found[other].add(operator)
        return found

    @cached_property
    def before(self) -> list[set[int]]:
        """All operators before each, on paths through any operators of the problem."""
        near, position = self.problem.predecessors(), {one: at for at, one in enumerate(self.operators)}
        every: list[set[int]] = [set() for _ in near]
        for operator in require_order(near, "problem", "operators"):
            for other in near[operator]:
                every[operator] |= {other} | every[other]
        return [{position[one] for one in every[operator] if one in position} for operator in self.operators]

    @cached_property
    def at_once(self) -> set[int]:
        """The operators that have a micro-batch live at the instant."""
        last = self.operators.index(self.last)
        return {last} | self.before[last]

    @cached_property
    def crossing(self) -> list[tuple[int, int, set[int]]]:
        """Tensors that operators that are counted make and others of them read: number, maker, readers."""
        position = {operator: at for at, operator in enumerate(self.operators)}
        return [
            (number, position[maker], {position[reader] for reader in set(readers) - {maker}})
            for number, (maker, readers) in enumerate(self.problem.tensors)
            if set(readers) - {maker} and {maker, *readers} <= set(self.operators)
        ]

    def buffered(self, operator: int) -> bool:
        """Whether a stage with the operator holds buffers at the instant: in sync while it has something live."""
        return not self.problem.flushes or operator in self.at_once

    def charged(self, readers: set[int]) -> int | None:
        """The one of several readers whose buffers count."""
        return min((each for each in readers if self.buffered(each)), default=None)

    @cached_property
    def _orders(self) -> dict[bool, list[int]]:
        forward = require_order(self.ahead, "problem", "operators")
        return {False: list(forward), True: list(reversed(forward))}

    def longest(
        self, lengths: Sequence[int], near: list[set[int]], once: Sequence[int] | None = None
    ) -> list[int]:
        """For each operator the longest sum along a path to it, without itself; near: the next ones on a path.

        once: what one operator of a path may count instead, with all that is further away.
        """
        found = [0] * len(lengths)
        for operator in self._orders[near is self.behind]:
            for other in near[operator]:
                found[operator] = max(found[operator], lengths[other] + found[other], once[other] if once else 0)
        return found


def bytes_of(row: Row, before: list[Row], live: int) -> int:
    """What so many live micro-batches need, with what they need of operators before theirs on the group."""
    return live * row.at[SAVED] + sum(
        other.at[SAVED] * (-(-live * row.size // other.size) if other.at[FULL] else min(live, 1))
        for other in before
    )


def most_live(row: Row, before: list[Row], free: int) -> int:
    """How many micro-batches, of all, memory lets be live at once."""
    low, high = 0, row.runs
    while low < high:
        middle = (low + high + 1) // 2
        if bytes_of(row, before, middle) <= free:
            low = middle
        else:
            high = middle - 1
    return low


def counted_of(problem: Problem, proof: Part, time: int) -> Counted:
    """What the cases share, if it goes with the problem. Raises Refused."""
    operators = proof.numbers("operators", len(problem.operators) - 1)
    if not 0 < len(set(operators)) == len(operators) <= MOST_OPERATORS or problem.constants & set(operators):
        raise Refused(proof.at("operators"), f"are not up to {MOST_OPERATORS} different ones that need the input")
    last = proof.number("last")
    if last not in operators or any(last in before for before in problem.predecessors()):
        raise Refused(proof.at("last"), "is none of the operators, or another one reads from it")
    memory = proof.number("memory_bytes", 1)
    if memory != max(each for each, _ in problem.devices):
        raise Refused(proof.at("memory_bytes"), "is not that of a device")
    require_order(problem.predecessors(), "problem", "operators")
    return Counted(
        problem=problem,
        operators=operators,
        last=last,
        devices=problem.devices_of_bound(proof),
        memory=memory,
        time=time,
        room=time - proof.number("every_ns"),
    )


def rows_of(
    counted: Counted, group: Part, turns: int, sizes: list[int], samples: int, pattern: bool
) -> list[list[Row]]:
    """For each operator that is counted its rows. sizes: that micro-batches may have. Raises Refused."""
    cuts = _cuts(counted, group)
    named = group.numbers("sizes", sizes[-1])
    if len(named) != len(cuts) or not set(named) <= set(sizes):
        raise Refused(group.at("sizes"), f"are not {len(cuts)} that divide the mini-batch")
    listed, place = group.raw("rows"), group.at("rows")
    if not isinstance(listed, list) or len(listed) != len(counted.operators):
        raise Refused(place, f"are not {len(counted.operators)} lists")
    found: list[list[Row]] = []
    for operator, rows in enumerate(listed):
        if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == CUT + 1 for row in rows):
            raise Refused(f"{place}[{operator}]", "is no list of rows of eight numbers")
        for row in rows:
            for number in row:
                whole(number, f"{place}[{operator}]", 0, 10**MOST_DIGITS - 1)
            whole(row[FULL], f"{place}[{operator}]", 0, 1)
            whole(row[CUT], f"{place}[{operator}]", 0, len(cuts) - 1)
            if (row[FORWARD] or row[BACK]) and counted.problem.overlap[0]:
                raise Refused(f"{place}[{operator}]", "has the time of an operator that nobody waits for")
        found.append([_row(row, named, cuts, turns, samples, pattern) for row in rows])
    if {row[CUT] for rows in listed for row in rows} != set(range(len(cuts))):
        raise Refused(group.at("cuts"), "are not those that rows name")
    group.end()
    return found


def _row(
    row: list[int], sizes: list[int], cuts: list[list[list[int]]], turns: int, samples: int, pattern: bool
) -> Row:
    size = sizes[row[CUT]]
    runs = samples // size
    return Row(tuple(row), size, turns, runs if pattern else -(-runs // turns), cuts[row[CUT]])


def _cuts(counted: Counted, group: Part) -> list[list[list[int]]]:
    """For each way to cut the mini-batch four numbers of each tensor."""
    listed, place = group.raw("cuts"), group.at("cuts")
    tensors = counted.problem.tensors
    if not isinstance(listed, list):
        raise Refused(place, "is no list")
    for cut, sent in enumerate(listed):
        if not isinstance(sent, list) or len(sent) != len(tensors):
            raise Refused(f"{place}[{cut}]", f"is not of {len(tensors)} tensors")
        for numbers, (maker, _) in zip(sent, tensors, strict=True):
            if not isinstance(numbers, list) or len(numbers) != 4:
                raise Refused(f"{place}[{cut}]", "has not four numbers for each tensor")
            for number in numbers:
                whole(number, f"{place}[{cut}]", 0, 10**MOST_DIGITS - 1)
            if any(numbers) and maker in counted.problem.constants:
                raise Refused(f"{place}[{cut}]", "has costs of a tensor that every stage can make")
            if any(numbers[MADE_NS:]) and counted.problem.overlap[0]:
                raise Refused(f"{place}[{cut}]", "has the time of a message that nobody waits for")
    return listed
