"""Whether operators can be divided among groups of devices in a time (cost model, section 11, "Groups").

Imports the standard library and the certificate's own form and premises only. A proof has tables of what each
operator takes in a stage on a group of devices (`bounds.by_group.group_tables`), and divides the sizes that
micro-batches may have into boxes. In one ns less than is claimed, in none of them, no division of all operators
into sets, each on a group that has time and memory for it, takes as few devices as there are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipebench.certificates.document import Part, Refused, whole
from pipebench.certificates.group_rows import (
    BACK,
    CROSSING,
    FORWARD,
    FULL,
    MADE_BYTES,
    MADE_NS,
    READ_BYTES,
    READ_NS,
    SAVED,
    STATE,
    WHOLE,
    Counted,
    Row,
    bytes_of,
    counted_of,
    most_live,
    rows_of,
)
from pipebench.certificates.premises import Problem

MOST_SAMPLES = 2**20
"""Of a mini-batch: all its divisors are looked at."""
MOST_DEEP = 100
"""Splits of sizes in each other."""
MOST_STEPS = 20_000
"""Rows of operators that are tried for one set; a set that needs more counts as held."""
Range = tuple[int, int]


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
        for copies in _divisors(problem.mini_batch)
        if copies <= counted.devices
        for alone in ((True, False) if counted.devices // copies > 1 else (True,))
        for size in (0, *(() if problem.flushes else _divisors(problem.mini_batch // copies)))
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
        self.sizes = [kind.micro_batch] if kind.pattern else _divisors(samples)
        self._devices = counted.devices // kind.copies
        expected = [
            (count, turns)
            for count in range(1, (1 if kind.alone else self._devices) + 1)
            for turns in _divisors(count)
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
        box = _Box(self._counted, self._groups, sizes, self._kind.pattern)
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
        fewest, with_several = self._fewest(held)
        if (fewest if self._kind.alone else with_several)[-1] > self._devices:
            return [[] for _ in held]
        every = len(fewest) - 1
        return [
            [one for one in sets if count + fewest[every ^ one] <= self._devices]
            for (count, _), sets in zip(self._groups, held, strict=True)
        ]

    def _fewest(self, held: list[list[int]]) -> tuple[list[int], list[int]]:
        """For each set of operators the fewest devices of groups that hold it together; and where one of these has
        several devices. More than there are where they are too few.
        """
        too_many = self._devices + 1
        least = [too_many] * (1 << len(self._counted.operators))
        for (count, _), sets in zip(self._groups, held, strict=True):
            for one in sets:
                least[one] = min(least[one], count)
        fewest, with_several = [0] + [too_many] * (len(least) - 1), [too_many] * len(least)
        for one in range(1, len(least)):
            lowest = one & -one
            rest = one ^ lowest
            part = rest
            while True:
                count, other = least[part | lowest], rest ^ part
                if count < too_many:
                    fewest[one] = min(fewest[one], count + fewest[other])
                    several = fewest[other] if count > 1 else with_several[other]
                    with_several[one] = min(with_several[one], count + several)
                if not part:
                    break
                part = (part - 1) & rest
        return fewest, with_several


class _Box:
    """Plans whose micro-batch sizes are in a range for each operator.

    complete: whether each operator has a row in it that a device has memory for.
    """

    def __init__(
        self, counted: Counted, groups: list[tuple[int, list[list[Row]]]], sizes: list[Range], pattern: bool
    ) -> None:
        self._counted, self._pattern, self._sizes = counted, pattern, sizes
        self._live = [self._samples_live(operator) for operator in range(len(sizes))]
        of_operators: list[list[Row]] = [
            [row for _, rows in groups for row in rows[operator] if self._inside(operator, row)]
            for operator in range(len(sizes))
        ]
        self.complete = all(of_operators)
        if not self.complete:
            return
        self._rows = of_operators
        forward = [min(row.at[FORWARD] for row in rows) for rows in of_operators]
        back = [min(row.at[BACK] for row in rows) for rows in of_operators]
        self._both = [min(row.at[FORWARD] + row.at[BACK] for row in rows) for rows in of_operators]
        ahead = counted.longest(forward, counted.ahead)
        self._start = [
            counted.longest(
                forward,
                counted.ahead,
                [
                    before + min(row.times(least) * row.at[FORWARD] for row in rows)
                    for before, rows in zip(ahead, of_operators, strict=True)
                ],
            )[operator]
            for operator, (least, _) in enumerate(sizes)
        ]
        self._end = counted.longest(back, counted.ahead)
        self._above = counted.longest(self._both, counted.ahead)
        self._below = counted.longest(self._both, counted.behind)
        self._between: dict[int, list[int]] = {}
        starts, ends = _of_sets(self._start), _of_sets(self._end)
        both = [one + other for one, other in zip(starts, ends, strict=True)]
        self._waits = [[0] * len(starts)] if pattern else [starts, both]
        self._columns = (WHOLE,) if pattern else (WHOLE, CROSSING)

    def _samples_live(self, operator: int) -> int:
        """Samples of an operator that are live at the instant, at least."""
        counted = self._counted
        if operator not in counted.at_once:
            return 0
        later = [other for other in counted.at_once if other == operator or operator in counted.before[other]]
        return max(self._sizes[other][0] for other in later)

    def _held(self, operator: int, row: Row) -> int:
        """Bytes of a row at the instant."""
        live = self._live[operator]
        if not live:
            return row.at[STATE]
        at_once = 1 if self._pattern or not row.at[FULL] else row.times(max(live, row.size))
        return row.at[STATE] + at_once * row.at[SAVED]

    def _inside(self, operator: int, row: Row) -> bool:
        least, most = self._sizes[operator]
        return least <= row.size <= most and self._held(operator, row) <= self._counted.memory

    def _passes(self, size: int) -> list[int]:
        """Of each operator what passes between its forward and its backward of so many samples, at least."""
        if size not in self._between:
            once = [
                min(
                    max(
                        row.times(size) * (row.at[FORWARD] + row.at[BACK]),
                        row.at[FORWARD] + row.at[BACK] + (row.times(size) - 1) * row.apart + below,
                    )
                    for row in rows
                )
                for rows, below in zip(self._rows, self._below, strict=True)
            ]
            self._between[size] = self._counted.longest(self._both, self._counted.behind, once)
        return self._between[size]

    def within(self, rows: list[list[Row]], sets: Iterable[int]) -> Iterator[int]:
        """Those of some sets of operators whose least times and bytes, each by itself, go into what there is."""
        inside = [[row for row in each if self._inside(at, row)] for at, each in enumerate(rows)]
        never = max(self._counted.time, self._counted.memory) + 1
        times = [
            _sums([min((row.at[column] for row in each), default=never) for each in inside])
            for column in self._columns
        ]
        held = _sums([min((self._held(at, row) for row in each), default=never) for at, each in enumerate(inside)])
        for one in sets:
            if held[one] <= self._counted.memory and all(
                taken[one] <= self._counted.room - waits[one]
                for taken, waits in zip(times, self._waits, strict=True)
            ):
                yield one

    def holds(self, rows: list[list[Row]], one: int) -> bool:
        """Whether a row of each operator of the set goes into time, memory and rounds together."""
        counted = self._counted
        chosen = [operator for operator in range(len(rows)) if one >> operator & 1]
        limits = [counted.room - waits[one] for waits in self._waits] + [counted.memory]
        costs = [
            [
                (row, [*(row.at[column] for column in self._columns), held])
                for row, held in self._priced(rows, at, chosen)
            ]
            for at in chosen
        ]
        least: list[list[int]] = [[0] * len(limits)]
        for each in reversed(costs):
            if not each:
                return False
            least.append([low + min(cost[at] for _, cost in each) for at, low in enumerate(least[-1])])
        least.reverse()
        if any(low > limit for low, limit in zip(least[0], limits, strict=True)):
            return False
        if not all(
            fit_together([[(cost[at], cost[-1]) for _, cost in each] for each in costs], limits[at], limits[-1])
            for at in range(len(self._columns))
        ):
            return False
        self._steps = 0
        return self._some(chosen, costs, least, limits, [], [0] * len(limits))

    def _some(
        self,
        chosen: list[int],
        costs: list[list[tuple[Row, list[int]]]],
        least: list[list[int]],
        limits: list[int],
        taken: list[Row],
        spent: list[int],
    ) -> bool:
        if len(taken) == len(chosen):
            return True
        left = least[len(taken) + 1]
        for row, cost in costs[len(taken)]:
            self._steps += 1
            if self._steps > MOST_STEPS:
                return True
            more = [one + other for one, other in zip(spent, cost, strict=True)]
            if any(one + low > limit for one, low, limit in zip(more, left, limits, strict=True)):
                continue
            further = [*taken, row]
            if self._in_rounds(chosen, further) and self._some(chosen, costs, least, limits, further, more):
                return True
        return False

    def _in_rounds(self, chosen: list[int], rows: list[Row]) -> bool:
        """Whether each operator that has a row already has time for all its micro-batches, of which memory lets so
        many be live: with further operators there is less.
        """
        counted = self._counted
        free = counted.memory - sum(row.at[STATE] for row in rows)
        for operator, row in zip(chosen, rows, strict=False):
            stay = row.at[FORWARD] + row.at[BACK] + self._passes(row.size)[operator]
            if not (row.at[FULL] and row.at[SAVED] and stay):
                continue
            before = [
                other
                for at, other in zip(chosen, rows, strict=False)
                if at in counted.before[operator] and (row.turns == 1 or other.size == row.size)
            ]
            if self._pattern:
                if bytes_of(row, before, -(-row.runs * stay // (row.turns * max(counted.time, 1)))) > free:
                    return False
                continue
            live = most_live(row, before, free)
            if not live:
                return False
            rounds = -(-row.runs // live)
            others = row.runs - 1 - (rounds - 1) * live
            needed = min(rounds * stay + others * row.apart, (rounds + 1) * stay)
            if needed > counted.room - self._start[operator] - self._end[operator]:
                return False
        return True

    def _priced(self, rows: list[list[Row]], at: int, chosen: list[int]) -> Iterator[tuple[Row, int]]:
        """The rows of an operator that are quick enough beside those of its set, each with all its memory."""
        counted, inside = self._counted, set(chosen)
        for row in rows[at]:
            if not self._inside(at, row):
                continue
            held, before, here = self._held(at, row), self._above[at], row.at[FORWARD] + row.at[BACK]
            longest = before + here + self._below[at]
            for number, maker, readers in counted.crossing:
                sent = row.cut[number]
                if maker == at and readers - inside:
                    held += sent[MADE_BYTES] if counted.buffered(at) else 0
                    behind = max(self._both[each] + self._below[each] for each in readers - inside)
                    longest = max(longest, before + here + sent[MADE_NS] + behind)
                elif at in readers and maker not in inside:
                    ahead = self._above[maker] + self._both[maker]
                    longest = max(longest, ahead + sent[READ_NS] + here + self._below[at])
                    held += sent[READ_BYTES] if at == counted.charged(readers & inside) else 0
            if self._pattern or longest <= counted.time:
                yield row, held


def fit_together(choices: list[list[tuple[int, int]]], room: int, most: int) -> bool:
    """Whether one of each list goes into the room and the memory (`most`) together."""
    found: list[tuple[int, int]] = [(0, 0)]
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


def _sums(values: Sequence[int]) -> list[int]:
    """Of each set the sum."""
    found = [0]
    for value in values:
        found += [each + value for each in found]
    return found


def _of_sets(values: list[int]) -> list[int]:
    """Of each set of operators the least value; 0 of the empty one."""
    found = [max(values)]
    for value in values:
        found += [min(each, value) for each in found]
    return [0, *found[1:]]


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
