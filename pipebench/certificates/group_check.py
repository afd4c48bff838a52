"""Whether operators can be divided among groups of devices in a time (cost model, section 11, "Groups").

Imports the standard library and the certificate's own form and premises only. A proof has tables of what each
operator takes in a stage on a group of devices (`pipebench.bounds.group_tables`). In one ns less than is claimed
no division of all operators into sets, each on a group that has time and memory for it, takes as few devices as
there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipebench.certificates.document import MOST_DIGITS, Part, Refused, whole
from pipebench.certificates.premises import Problem, require_order

MOST_OPERATORS = 12
"""That are counted: all sets of them are looked at."""
MOST_SAMPLES = 2**20
"""Of a mini-batch: all its divisors are looked at."""
WEIGHTS = (1, 0), (0, 1), (1, 1), (2, 1), (1, 2), (3, 1), (1, 3)
"""Of time and of memory in the sums that a group must keep to. A plan keeps to every such sum."""
NOTHING, START, BOTH = range(3)
"""Where a device waits: nowhere, before its first task, at both ends."""


@dataclass(frozen=True)
class Counted:
    """What all cases share.

    operators: those that are counted; a set has bit k for the k-th of them.
    devices: of a plan. memory: bytes of one device. room: ns in which a device can run something.
    waits: of each set, the ns of NOTHING, START and BOTH.
    at_once: sets of operators that save something at one instant.
    longest: the ns of one sample on its way down a path and back.
    """

    problem: Problem
    operators: list[int]
    devices: int
    memory: int
    time: int
    room: int
    forward: list[int]
    back: list[int]

    @cached_property
    def waits(self) -> list[list[int]]:
        behind: list[set[int]] = [set() for _ in self.problem.operators]
        for operator, before in enumerate(self.problem.predecessors()):
            for other in before:
                behind[other].add(operator)
        start = _of_sets(_longest_to(self.problem.predecessors(), self.forward), self.operators)
        end = _of_sets(_longest_to(behind, self.back), self.operators)
        return [[0] * len(start), start, [one + other for one, other in zip(start, end, strict=True)]]

    @cached_property
    def longest(self) -> int:
        both = [one + other for one, other in zip(self.forward, self.back, strict=True)]
        above = _longest_to(self.problem.predecessors(), both)
        return max(one + other for one, other in zip(above, both, strict=True))

    @cached_property
    def at_once(self) -> list[int]:
        before = self.problem.predecessors()
        ancestors = [{operator} for operator in range(len(before))]
        for operator in require_order(before, "problem", "operators"):
            for other in before[operator]:
                ancestors[operator] |= ancestors[other]
        read = set().union(*before)
        return [
            sum(1 << at for at, operator in enumerate(self.operators) if operator in ancestors[last])
            for last in range(len(before))
            if last not in read
        ]


def groups_bound(problem: Problem, part: Part) -> int:
    """What no plan of a problem without a flush is below. Raises Refused."""
    proof = part.part("proof")
    if problem.flushes:
        raise Refused(proof.place, "is of problems without a flush")
    if problem.mini_batch > MOST_SAMPLES:
        raise Refused(proof.place, f"is of mini-batches of up to {MOST_SAMPLES} samples")
    claimed = proof.number("claimed_ns", 1)
    counted = _counted(problem, proof, claimed - 1)
    cases = proof.parts("cases")
    expected = [
        (copies, size)
        for copies in _divisors(problem.mini_batch)
        if copies <= counted.devices
        for size in (0, *_divisors(problem.mini_batch // copies))
    ]
    if [(case.number("copies"), case.number("micro_batch")) for case in cases] != expected:
        raise Refused(proof.at("cases"), "are not those of all copies and micro-batches")
    for case, (copies, size) in zip(cases, expected, strict=True):
        needed = _needed(counted, case, counted.devices // copies, pattern=size > 0)
        waits_too_long = size == 0 and counted.longest > counted.time
        if not waits_too_long and needed <= counted.devices // copies:
            raise Refused(case.place, f"{counted.time} ns suffice for what the devices hold")
        case.end()
    proof.end()
    return claimed


def _counted(problem: Problem, proof: Part, time: int) -> Counted:
    """What the cases share, if it goes with the problem."""
    operators = proof.numbers("operators", len(problem.operators) - 1)
    if not 0 < len(set(operators)) == len(operators) <= MOST_OPERATORS or problem.constants & set(operators):
        raise Refused(proof.at("operators"), f"are not up to {MOST_OPERATORS} different ones that need the input")
    memory = proof.number("memory_bytes", 1)
    if memory != max(each for each, _ in problem.devices):
        raise Refused(proof.at("memory_bytes"), "is not that of a device")
    ends = proof.numbers("forward_ns"), proof.numbers("back_ns")
    for name, found in zip(("forward_ns", "back_ns"), ends, strict=True):
        if len(found) != len(problem.operators):
            raise Refused(proof.at(name), f"are {len(found)} of {len(problem.operators)}")
        if any(found) and (problem.overlap[0] or any(found[operator] for operator in problem.constants)):
            raise Refused(proof.at(name), "are those of operators that nobody waits for")
    return Counted(
        problem=problem,
        operators=operators,
        devices=proof.number("devices", 1, len(problem.devices)),
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
        for one in _held(counted, group, pattern):
            least[one] = min(least[one], count)
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


def _held(counted: Counted, group: Part, pattern: bool) -> list[int]:
    """The sets of operators for which a group has time and memory."""
    rows = _rows(counted, group)
    lacking = _crossing_bytes(counted, group)
    group.end()
    fits = [all(rows[at] for at in range(len(rows)) if one >> at & 1) for one in range(len(lacking))]
    for column, wait in ((0, NOTHING),) if pattern else ((0, START), (1, BOTH)):
        for last in counted.at_once:
            for one, other in WEIGHTS:
                costs = [
                    min(
                        (
                            one * row[column] * counted.memory
                            + other * (row[2] + (row[3] if last >> at & 1 else 0)) * counted.time
                            for row in found
                        ),
                        default=0,
                    )
                    for at, found in enumerate(rows)
                ]
                summed = _sums(costs)
                for held, waited in enumerate(counted.waits[wait]):
                    have = one * (counted.room - waited) * counted.memory
                    have += other * (counted.memory - lacking[held]) * counted.time
                    fits[held] = fits[held] and summed[held] <= have
    return [one for one, fit in enumerate(fits) if fit]


def _rows(counted: Counted, group: Part) -> list[list[list[int]]]:
    """For each operator that is counted its rows: two times, bytes of state, and bytes of a micro-batch."""
    listed = group.raw("rows")
    place = group.at("rows")
    if not isinstance(listed, list) or len(listed) != len(counted.problem.operators):
        raise Refused(place, f"are not {len(counted.problem.operators)} lists")
    for operator, found in enumerate(listed):
        if not isinstance(found, list) or not all(isinstance(row, list) and len(row) == 4 for row in found):
            raise Refused(f"{place}[{operator}]", "is no list of rows of four numbers")
        for row in found:
            for number in row:
                whole(number, f"{place}[{operator}]", 0, 10**MOST_DIGITS - 1)
    return [listed[operator] for operator in counted.operators]


def _crossing_bytes(counted: Counted, group: Part) -> list[int]:
    """Of each set of operators the buffers for tensors between it and operators outside."""
    buffers, tensors = group.numbers("buffers"), counted.problem.tensors
    if len(buffers) != len(tensors):
        raise Refused(group.at("buffers"), f"are {len(buffers)} of {len(tensors)}")
    found = [0] * (1 << len(counted.operators))
    position = {operator: at for at, operator in enumerate(counted.operators)}
    for size, (producer, readers) in zip(buffers, tensors, strict=True):
        if size and producer in counted.problem.constants:
            raise Refused(group.at("buffers"), "are of a tensor that every stage can make")
        if size and all(each in position for each in (producer, *readers)):
            ends = sum({1 << position[each] for each in (producer, *readers)})
            for one in range(len(found)):
                if one & ends not in (0, ends):
                    found[one] += size
    return found


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
