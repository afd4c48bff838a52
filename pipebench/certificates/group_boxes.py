"""Which operators a group of devices holds in a time, in plans whose micro-batch sizes are in a box.

Imports the standard library and the certificate's own rows only. A set of operators is held where a row of each of
them goes into time, memory and rounds together (cost model, section 11, lemmas 10 to 12).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

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
    most_live,
)

MOST_TRIED = 20_000
"""Rows of operators that are tried for one set; a set that needs more counts as held."""
MOST_PAIRS = 1024
"""Of time and memory that are kept of a set; of more the last are joined, which costs the least of each. A bound
that the suite proves keeps fewer (`bounds.by_group.partition`).
"""
Range = tuple[int, int]


class Box:
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
        counted.effort.spend(sum(len(rows[at]) for at in chosen))
        if not all(
            fit_together(
                [[(cost[at], cost[-1]) for _, cost in each] for each in costs],
                limits[at],
                limits[-1],
                counted.effort.spend,
            )
            for at in range(len(self._columns))
        ):
            return False
        self._tried = 0
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
            self._tried += 1
            if self._tried > MOST_TRIED:
                return True
            self._counted.effort.spend(len(spent))
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


def fit_together(
    choices: list[list[tuple[int, int]]], room: int, most: int, spend: Callable[[int], None] = lambda _: None
) -> bool:
    """Whether one of each list goes into the room and the memory (`most`) together. spend: told the steps.

    Where more than MOST_PAIRS of them are worth a look it may say so though none does.
    """
    found: list[tuple[int, int]] = [(0, 0)]
    for each in choices:
        spend(len(found) * len(each))
        made = sorted(
            (time + more, memory + held)
            for time, memory in found
            for more, held in each
            if time + more <= room and memory + held <= most
        )
        found = []
        for choice in made:
            if found and choice[1] >= found[-1][1]:
                continue
            if len(found) == MOST_PAIRS:
                found[-1] = found[-1][0], choice[1]
            else:
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
