"""Whether operators can be divided among groups of devices in a time (cost model, section 11, "Groups").

Imports the standard library and the certificate's own form and premises only. A proof has tables of what each
operator takes in a stage on a group of devices (`bounds.by_group.group_tables`), and divides the sizes that
micro-batches may have into boxes. In one ns less than is claimed, in none of them, no division of all operators
into sets, each on a group that has time and memory for it, takes as few devices as there are.
"""

from dataclasses import dataclass
from typing import Any

from pipebench.certificates.document import Part, Refused, whole
from pipebench.certificates.group_boxes import Box, Range
from pipebench.certificates.group_rows import Counted, counted_of, rows_of
from pipebench.certificates.problem_premises import Problem

MOST_SAMPLES = 2**20
"""Of a mini-batch: all its divisors are looked at."""
MOST_DEEP = 100
"""Splits of sizes in each other."""


@dataclass(frozen=True)
class Kind:
    """Of plans: copies of the pipeline, whether each group is one device, whether all stages have one size of
    micro-batches, and that size (0 where they do not).
    """

    copies: int
    alone: bool
    pattern: bool
    micro_batch: int


def groups_bound(problem: Problem, part: Part) -> int:
    """What no plan of one pipeline on its devices is below. Raises Refused."""
    proof = part.part("proof")
    if problem.mini_batch > MOST_SAMPLES:
        raise Refused(proof.place, f"is of mini-batches of up to {MOST_SAMPLES} samples")
    claimed = proof.number("claimed_ns", 1)
    counted = counted_of(problem, proof, claimed - 1)
    cases, splits = proof.parts("cases"), proof.raw("splits")
    expected = [
        Kind(copies, alone, size > 0, size)
        for copies in divisors(problem.mini_batch)
        if copies <= counted.devices
        for alone in ((True, False) if counted.devices // copies > 1 else (True,))
        for size in (0, *(() if problem.flushes else divisors(problem.mini_batch // copies)))
    ]
    if [
        (case.number("copies"), case.raw("alone"), case.raw("pattern"), case.number("micro_batch"))
        for case in cases
    ] != [(kind.copies, kind.alone, kind.pattern, kind.micro_batch) for kind in expected]:
        raise Refused(proof.at("cases"), "are not those of all copies, groups and micro-batches")
    if not isinstance(splits, list) or len(splits) != len(cases):
        raise Refused(proof.at("splits"), f"are not {len(cases)} of all cases")
    for case, kind, split in zip(cases, expected, splits, strict=True):
        looked_at = _Case(counted, case, kind)
        _require_split(split, len(counted.operators) - 1, looked_at.sizes, proof.at("splits"))
        whole_range = [(looked_at.sizes[0], looked_at.sizes[-1])] * len(counted.operators)
        if looked_at.possible(whole_range, split, None):
            raise Refused(case.place, f"{counted.time} ns suffice for what the devices hold")
        case.end()
    proof.end()
    return claimed


def _require_split(split: Any, operator: int, sizes: list[int], place: str, deep: int = MOST_DEEP) -> None:
    """Raises Refused where it is neither empty nor an operator, a size, and the splits on both sides of it."""
    if not isinstance(split, list) or len(split) not in (0, 4):
        raise Refused(place, "has a split that is not of an operator, a size and what is on both sides of it")
    if not deep:
        raise Refused(place, f"are more than {MOST_DEEP} in each other")
    if split:
        whole(split[0], place, 0, operator)
        whole(split[1], place, sizes[0], sizes[-1])
        for part in split[2:]:
            _require_split(part, operator, sizes, place, deep - 1)


class _Case:
    """The groups of a kind of plans."""

    def __init__(self, counted: Counted, case: Part, kind: Kind) -> None:
        self._counted, self._kind = counted, kind
        samples = counted.problem.mini_batch // kind.copies
        self.sizes = [kind.micro_batch] if kind.pattern else divisors(samples)
        self._devices = counted.devices // kind.copies
        expected = [
            (count, turns)
            for count in range(1, (1 if kind.alone else self._devices) + 1)
            for turns in divisors(count)
        ]
        groups = case.parts("groups")
        if [(group.number("devices"), group.number("turns")) for group in groups] != expected:
            raise Refused(case.at("groups"), f"are not those of all sizes and turns on {self._devices} devices")
        self._groups = [
            (count, rows_of(counted, group, turns, self.sizes, samples, kind.pattern))
            for group, (count, turns) in zip(groups, expected, strict=True)
        ]

    def possible(self, sizes: list[Range], split: list[Any], known: list[list[int]] | None) -> bool:
        """Whether the devices hold all operators somewhere in a box of sizes.

        known: of each group the sets that it may hold; None: all.
        """
        if any(least > most for least, most in sizes):
            return False
        count = len(self._counted.operators)
        self._counted.effort.spend(3**count + (len(self._groups) << count))
        box = Box(self._counted, self._groups, sizes, self._kind.pattern)
        if not box.complete:
            return False
        every = range(1, 1 << len(self._counted.operators))
        might = [
            list(box.within(rows, every if known is None else known[at]))
            for at, (_, rows) in enumerate(self._groups)
        ]
        held = [
            [one for one in sets if box.holds(rows, one)]
            for sets, (_, rows) in zip(self._in_divisions(might), self._groups, strict=True)
        ]
        held = self._in_divisions(held)
        if not any(held):
            return False
        if not split:
            return True
        operator, size, *below_and_above = split
        least, most = sizes[operator]
        following = min((each for each in self.sizes if each > size), default=most + 1)
        return any(
            self.possible([*sizes[:operator], part, *sizes[operator + 1 :]], further, held)
            for part, further in zip(
                ((least, min(most, size)), (max(least, following), most)), below_and_above, strict=True
            )
        )

    def _in_divisions(self, held: list[list[int]]) -> list[list[int]]:
        """Of the sets that groups hold those that are in a division of all operators among the devices, at least:
        the fewest devices for all other operators are not too many. None where there is no division.
        """
        least, several = self._least(held, 1), self._least(held, 2)
        fewest = self._fewest(least)
        if (fewest if self._kind.alone else self._fewest_with_several(least, several, fewest))[-1] > self._devices:
            return [[] for _ in held]
        every = len(fewest) - 1
        return [
            [one for one in sets if count + fewest[every ^ one] <= self._devices]
            for (count, _), sets in zip(self._groups, held, strict=True)
        ]

    def _least(self, held: list[list[int]], fewest: int) -> list[int]:
        """For each set of operators the fewest devices of a group that holds it, of `fewest` at least; more than
        there are where none does.
        """
        least = [self._devices + 1] * (1 << len(self._counted.operators))
        for (count, _), sets in zip(self._groups, held, strict=True):
            for one in sets if count >= fewest else ():
                least[one] = min(least[one], count)
        return least

    def _fewest(self, least: list[int]) -> list[int]:
        """For each set of operators the fewest devices of groups that hold it together; likewise."""
        fewest = [0] * len(least)
        for one in range(1, len(least)):
            lowest = one & -one
            part = rest = one ^ lowest
            found = self._devices + 1
            while True:
                if least[part | lowest] < found:
                    found = min(found, least[part | lowest] + fewest[rest ^ part])
                if not part:
                    break
                part = (part - 1) & rest
            fewest[one] = found
        return fewest

    def _fewest_with_several(self, least: list[int], several: list[int], fewest: list[int]) -> list[int]:
        """The same where one of the groups has several devices."""
        with_several = [self._devices + 1] * len(least)
        for one in range(1, len(least)):
            lowest = one & -one
            part = rest = one ^ lowest
            while True:
                here, other = part | lowest, rest ^ part
                found = min(several[here] + fewest[other], least[here] + with_several[other])
                with_several[one] = min(with_several[one], found)
                if not part:
                    break
                part = (part - 1) & rest
        return with_several


def divisors(number: int) -> list[int]:
    """Ascending."""
    return [each for each in range(1, number + 1) if number % each == 0]
