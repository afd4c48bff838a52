"""Coarsening: neighbours are joined pair by pair, level by level (RaNNC, section III-B)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean, pstdev

from pipebench_rannc.group_costs import Group, GroupCosts
from pipebench_rannc.quotient import Quotient

UNPROFILED = 200
"""released: while there are more groups than this, unions are taken to cost nothing."""
FEWEST = 5
"""released: with so few groups coarsening stops."""


@dataclass(frozen=True, slots=True)
class Rules:
    """blocks: how many to stop at. limit_bytes: memory of a device. released: choose as the released code does."""

    blocks: int
    limit_bytes: int
    released: bool = False


class Coarsening:
    """Groups of atoms and their costs while they are joined. history: for each level the pairs that were joined.

    A group goes by the number of an atom of it; `members` are its atoms.
    """

    def __init__(self, quotient: Quotient, costs: GroupCosts, count: int) -> None:
        self.quotient = quotient
        self.costs = costs
        self.groups: dict[int, Group] = {atom: costs.atom(atom) for atom in range(count)}
        self.members: dict[int, list[int]] = {atom: [atom] for atom in range(count)}
        self.history: list[list[tuple[list[int], list[int]]]] = []
        self.rejected = 0

    def run(self, rules: Rules, check: Callable[[], None]) -> None:
        """Levels until there are `blocks` groups or a level joins none."""
        while len(self.groups) > rules.blocks:
            check()
            if rules.released and len(self.groups) <= FEWEST:
                return
            joined = self._level(rules, check)
            if not joined:
                return
            self.history.append(joined)

    def _level(self, rules: Rules, check: Callable[[], None]) -> list[tuple[list[int], list[int]]]:
        times = {group: self.costs.time(made) for group, made in self.groups.items()}
        longest = fmean(times.values()) + 2 * pstdev(times.values()) if rules.released else float("inf")
        unprofiled = rules.released and len(self.groups) > UNPROFILED
        order = self.quotient.settle()
        reached = self.quotient.reached(order)
        matched: set[int] = set()
        joined = []
        for turn, v in enumerate(
            sorted(self.groups, key=lambda group: (times[group], self.quotient.place[group]))
        ):
            if turn % 256 == 0:
                check()
            if v in matched or (unprofiled and times[v] > longest):
                continue
            for w in self._choices(v, times, rules.released, unprofiled, longest):
                if w in matched or (union := self._union(v, w, reached, rules.limit_bytes)) is None:
                    continue
                joined.append((self.members[v], self.members[w]))
                matched |= {v, w}
                reached[v] = reached[w] = reached[v] | reached[w]
                self._join(v, w, union)
                break
            if len(self.groups) == rules.blocks:
                break
        return joined

    def _choices(
        self, v: int, times: dict[int, int], released: bool, unprofiled: bool, longest: float
    ) -> Iterator[int]:
        """Neighbours of v, those to be joined with first. Paper: the union that takes least time."""
        after, before = self.quotient.after[v], self.quotient.before[v]
        if not released:
            near = {w for w in (*after, *before) if w in times}
            yield from sorted(near, key=lambda w: (self._time(v, w), self.quotient.place[w]))
            return
        gains = []
        for w, tensors in after.items():
            sent = sum(map(self.costs.communication, tensors))
            union = 0 if unprofiled else self._time(v, w)
            if (times[w] if unprofiled else union) <= longest:
                gains.append((times[v] + times[w] + sent - union, w))
        yield from (w for gain, w in sorted(gains, key=lambda each: -each[0]) if gain >= 0)

    def _time(self, v: int, w: int) -> int:
        one, other = self.groups[v], self.groups[w]
        if not one.shared & other.shared:
            return self.costs.time(one) + self.costs.time(other)
        return self.costs.time(self.costs.joined((one, other)))

    def _union(self, v: int, w: int, reached: list[int], limit_bytes: int) -> Group | None:
        """The union when it is convex and fits; reached: what groups led to as the level began, at least."""
        quotient = self.quotient
        first, second = (v, w) if quotient.place[v] < quotient.place[w] else (w, v)
        around = any(reached[group] >> second & 1 for group in quotient.after[first] if group != second)
        if around or quotient.between(first, second) is None:
            self.rejected += 1
            return None
        union = self.costs.joined((self.groups[v], self.groups[w]))
        inside = {v, w}
        received, sent = (
            frozenset[int]().union(
                *(tensors for one in inside for group, tensors in ends[one].items() if group not in inside)
            )
            for ends in (quotient.before, quotient.after)
        )
        return union if self.costs.memory(union, received, sent) <= limit_bytes else None

    def _join(self, v: int, w: int, union: Group) -> None:
        kept = self.quotient.join(v, w)
        gone = w if kept == v else v
        self.members[kept] = self.members[v] + self.members[w]
        self.groups[kept] = union
        del self.groups[gone], self.members[gone]
