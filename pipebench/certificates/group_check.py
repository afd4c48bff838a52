"""Whether operators can be divided among groups of devices in a time (cost model, section 11, "Groups").

Imports the standard library and the certificate's own form and premises only. A proof has tables of what each
operator takes in a stage on a group of devices (`pipebench.bounds.group_tables`). In one ns less than is claimed
no division of all operators into sets, each on a group that has time and memory for it, takes as few devices as
there are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipebench.certificates.document import MOST_DIGITS, Part, Refused, whole
from pipebench.certificates.premises import Problem, require_order

MOST_OPERATORS = 12
"""That are counted: all sets of them are looked at."""
MOST_SAMPLES = 2**20
"""Of a mini-batch: all its divisors are looked at."""
WHOLE, CROSSING, ROUND, STATE, LIVE, CUT = range(6)
"""What a row says: ns of a mini-batch, the same without weight gradients, ns of one micro-batch there and back,
bytes at all times, bytes of what is live at the instant, and the number of the stage's micro-batches.
"""
MADE_BYTES, READ_BYTES, MADE_NS, READ_NS = range(4)
"""What a tensor costs a stage that makes it, and one that reads it, where it crosses to another group."""
Choice = tuple[int, int]
"""Time and memory."""


@dataclass(frozen=True)
class Counted:
    """What all cases share.

    operators: those that are counted; a set has bit k for the k-th of them.
    devices: of a plan. memory: bytes of one device. time: ns that do not suffice. room: ns in which a device can
    run something. last: the operator whose first forward ends at the instant at which memory is looked at.
    """

    problem: Problem
    operators: list[int]
    last: int
    devices: int
    memory: int
    time: int
    room: int
    forward: list[int]
    back: list[int]

    @cached_property
    def round(self) -> list[int]:
        """What one sample takes in each operator, there and back."""
        return [one + other for one, other in zip(self.forward, self.back, strict=True)]

    @cached_property
    def above(self) -> list[int]:
        """What one sample takes before each operator, on the longest path, there and back."""
        return _longest_to(self.problem.predecessors(), self.round)

    @cached_property
    def below(self) -> list[int]:
        """What it takes behind each."""
        return _longest_to(self._readers, self.round)

    @cached_property
    def waits(self) -> list[list[int]]:
        """Of each set, the ns that a device with it waits before its first task, and at both ends."""
        start = _of_sets(_longest_to(self.problem.predecessors(), self.forward), self.operators)
        end = _of_sets(_longest_to(self.problem.predecessors(), self.back), self.operators)
        return [start, [one + other for one, other in zip(start, end, strict=True)]]

    @cached_property
    def _readers(self) -> list[set[int]]:
        behind: list[set[int]] = [set() for _ in self.problem.operators]
        for operator, before in enumerate(self.problem.predecessors()):
            for other in before:
                behind[other].add(operator)
        return behind

    @cached_property
    def at_once(self) -> set[int]:
        """The operators that have a micro-batch live at the instant."""
        before, reached, todo = self.problem.predecessors(), {self.last}, [self.last]
        while todo:
            new = before[todo.pop()] - reached
            reached |= new
            todo += new
        return reached

    @cached_property
    def crossing(self) -> list[tuple[int, int, set[int]]]:
        """Tensors that operators that are counted make and others of them read: number, maker, readers."""
        return [
            (number, maker, set(readers) - {maker})
            for number, (maker, readers) in enumerate(self.problem.tensors)
            if set(readers) - {maker} and {maker, *readers} <= set(self.operators)
        ]


def groups_bound(problem: Problem, part: Part) -> int:
    """What no plan of one pipeline on its devices is below. Raises Refused."""
    proof = part.part("proof")
    if problem.mini_batch > MOST_SAMPLES:
        raise Refused(proof.place, f"is of mini-batches of up to {MOST_SAMPLES} samples")
    claimed = proof.number("claimed_ns", 1)
    counted = _counted(problem, proof, claimed - 1)
    cases = proof.parts("cases")
    expected = [
        (copies, pattern, size)
        for copies in _divisors(problem.mini_batch)
        if copies <= counted.devices
        for pattern in ((False,) if problem.flushes else (False, True))
        for size in _divisors(problem.mini_batch // copies)
    ]
    if [(case.number("copies"), case.raw("pattern"), case.number("micro_batch")) for case in cases] != expected:
        raise Refused(proof.at("cases"), "are not those of all copies and micro-batches")
    for case, (copies, pattern, _) in zip(cases, expected, strict=True):
        if _needed(counted, case, counted.devices // copies, pattern) <= counted.devices // copies:
            raise Refused(case.place, f"{counted.time} ns suffice for what the devices hold")
        case.end()
    proof.end()
    return claimed


def _counted(problem: Problem, proof: Part, time: int) -> Counted:
    """What the cases share, if it goes with the problem."""
    operators = proof.numbers("operators", len(problem.operators) - 1)
    if not 0 < len(set(operators)) == len(operators) <= MOST_OPERATORS or problem.constants & set(operators):
        raise Refused(proof.at("operators"), f"are not up to {MOST_OPERATORS} different ones that need the input")
    last = proof.number("last")
    if last not in operators or any(last in before for before in problem.predecessors()):
        raise Refused(proof.at("last"), "is none of the operators, or another one reads from it")
    memory = proof.number("memory_bytes", 1)
    if memory != max(each for each, _ in problem.devices):
        raise Refused(proof.at("memory_bytes"), "is not that of a device")
    ends = proof.numbers("forward_ns"), proof.numbers("back_ns")
    for name, found in zip(("forward_ns", "back_ns"), ends, strict=True):
        if len(found) != len(problem.operators):
            raise Refused(proof.at(name), f"are {len(found)} of {len(problem.operators)}")
        if any(found) and (problem.overlap[0] or any(found[operator] for operator in problem.constants)):
            raise Refused(proof.at(name), "are those of operators that nobody waits for")
    require_order(problem.predecessors(), "problem", "operators")
    return Counted(
        problem=problem,
        operators=operators,
        last=last,
        devices=problem.devices_of_bound(proof),
        memory=memory,
        time=time,
        room=time - proof.number("every_ns"),
        forward=ends[0],
        back=ends[1],
    )


def _needed(counted: Counted, case: Part, devices: int, pattern: bool) -> int:
    """The fewest devices of groups that hold all operators; `devices` + 1 where they are too few."""
    expected = [(count, turns) for count in range(1, devices + 1) for turns in _divisors(count)]
    groups = case.parts("groups")
    if [(group.number("devices"), group.number("turns")) for group in groups] != expected:
        raise Refused(case.at("groups"), f"are not those of all sizes and turns on {devices} devices")
    least = [devices + 1] * (1 << len(counted.operators))
    for group, (count, _) in zip(groups, expected, strict=True):
        held = _Group(counted, group, pattern)
        for one in range(1, len(least)):
            if count < least[one] and held.holds(one):
                least[one] = count
    return _divided(least, devices)


def _divided(least: list[int], devices: int) -> int:
    """The fewest devices for all operators, from those of each set on one group."""
    fewest = [0] + [devices + 1] * (len(least) - 1)
    for one in range(1, len(least)):
        lowest = one & -one
        rest = one ^ lowest
        part = rest
        while True:
            fewest[one] = min(fewest[one], least[part | lowest] + fewest[rest ^ part])
            if not part:
                break
            part = (part - 1) & rest
    return fewest[-1]


class _Group:
    """A group of devices, and whether it has time and memory for a set of operators."""

    def __init__(self, counted: Counted, group: Part, pattern: bool) -> None:
        self._counted, self._pattern = counted, pattern
        self._cuts = _cuts(counted, group)
        self._rows = _rows(counted, group, len(self._cuts))
        if {row[CUT] for rows in self._rows for row in rows} != set(range(len(self._cuts))):
            raise Refused(group.at("cuts"), "are not those that rows name")
        self._columns = (WHOLE,) if pattern else (WHOLE, CROSSING)
        group.end()
        self._least = [
            _sums([min((row[column] for row in rows), default=counted.time + 1) for rows in self._rows])
            for column in self._columns
        ]
        self._state = _sums([min((row[STATE] + row[LIVE] for row in rows), default=0) for rows in self._rows])

    def holds(self, one: int) -> bool:
        """Whether a row of each operator of the set goes into the time and the memory together."""
        rooms = [
            self._counted.room - (0 if self._pattern else self._counted.waits[kind][one])
            for kind in range(len(self._columns))
        ]
        if self._state[one] > self._counted.memory or any(
            least[one] > room for least, room in zip(self._least, rooms, strict=True)
        ):
            return False
        chosen = {at: operator for at, operator in enumerate(self._counted.operators) if one >> at & 1}
        rows = [list(self._priced(at, set(chosen.values()))) for at in chosen]
        return all(
            fit_together(
                [[(row[column], held) for row, held in each] for each in rows], room, self._counted.memory
            )
            for column, room in zip(self._columns, rooms, strict=True)
        )

    def _priced(self, at: int, inside: set[int]) -> Iterator[tuple[list[int], int]]:
        """The rows of an operator that are quick enough beside those of its set, each with all its memory."""
        counted, operator = self._counted, self._counted.operators[at]
        for row in self._rows[at]:
            cut = self._cuts[row[CUT]]
            held, before = row[STATE] + row[LIVE], counted.above[operator]
            longest = before + row[ROUND] + counted.below[operator]
            for number, maker, readers in counted.crossing:
                sent = cut[number]
                if maker == operator and readers - inside:
                    held += sent[MADE_BYTES] if self._buffered(operator) else 0
                    behind = max(counted.round[each] + counted.below[each] for each in readers - inside)
                    longest = max(longest, before + row[ROUND] + sent[MADE_NS] + behind)
                elif operator in readers and maker not in inside:
                    ahead = counted.above[maker] + counted.round[maker]
                    longest = max(longest, ahead + sent[READ_NS] + row[ROUND] + counted.below[operator])
                    held += sent[READ_BYTES] if operator == self._charged(readers & inside) else 0
            if self._pattern or longest <= counted.time:
                yield row, held

    def _charged(self, readers: set[int]) -> int | None:
        """The one of several readers whose buffers count."""
        return next((each for each in self._counted.operators if each in readers and self._buffered(each)), None)

    def _buffered(self, operator: int) -> bool:
        """Whether a stage with the operator holds buffers at the instant: in sync while it has something live."""
        return not self._counted.problem.flushes or operator in self._counted.at_once


def fit_together(choices: list[list[Choice]], room: int, most: int) -> bool:
    """Whether one of each list goes into the room and the memory (`most`) together."""
    found: list[Choice] = [(0, 0)]
    for each in choices:
        made = sorted(
            (time + more, memory + held)
            for time, memory in found
            for more, held in each
            if time + more <= room and memory + held <= most
        )
        found = []
        for choice in made:
            if not found or choice[1] < found[-1][1]:
                found.append(choice)
    return bool(found)


def _rows(counted: Counted, group: Part, cuts: int) -> list[list[list[int]]]:
    """For each operator that is counted its rows."""
    listed, place = group.raw("rows"), group.at("rows")
    if not isinstance(listed, list) or len(listed) != len(counted.operators):
        raise Refused(place, f"are not {len(counted.operators)} lists")
    for operator, found in enumerate(listed):
        if not isinstance(found, list) or not all(isinstance(row, list) and len(row) == 6 for row in found):
            raise Refused(f"{place}[{operator}]", "is no list of rows of six numbers")
        for row in found:
            for number in row:
                whole(number, f"{place}[{operator}]", 0, 10**MOST_DIGITS - 1)
            whole(row[CUT], f"{place}[{operator}]", 0, cuts - 1)
            if row[ROUND] and counted.problem.overlap[0]:
                raise Refused(f"{place}[{operator}]", "has the time of an operator that nobody waits for")
    return listed


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


def _sums(values: Sequence[int]) -> list[int]:
    """Of each set the sum."""
    found = [0]
    for value in values:
        found += [each + value for each in found]
    return found


def _of_sets(values: list[int], operators: list[int]) -> list[int]:
    """Of each set of operators the least value; 0 of the empty one."""
    found = [max(values)]
    for operator in operators:
        found += [min(each, values[operator]) for each in found]
    return [0, *found[1:]]


def _longest_to(before: list[set[int]], lengths: list[int]) -> list[int]:
    """For each operator the longest sum along a path to it, without itself."""
    above = [0] * len(lengths)
    for operator in require_order(before, "problem", "operators"):
        for other in before[operator]:
            above[operator] = max(above[operator], above[other] + lengths[other])
    return above


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
