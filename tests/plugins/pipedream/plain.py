"""The released optimizer in plain Python, on units of the suite: the antichains that it walks over, and its DP.

Written from what the code does (sets of units, one transition after the other), to be equal to, and faster than.
"""

from collections import deque
from collections.abc import Sequence
from math import inf

from pipebench_pipedream.paper_costs import Units

Antichain = frozenset[int]


class AntichainWalk:
    """Antichains of a graph from its first source on, each with those that it moves on to."""

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        self.successors = successors
        units = range(len(successors))
        self.after: list[set[int]] = [self._behind(unit) for unit in units]
        self.before = [{other for other in units if unit in self.after[other]} for unit in units]
        start = frozenset([next(unit for unit in units if not self.before[unit])])
        self.leads: dict[Antichain, set[Antichain]] = {start: self.following(start)}
        waiting = deque(self.leads[start])
        while waiting:
            antichain = waiting.popleft()
            if antichain not in self.leads:
                self.leads[antichain] = self.following(antichain)
                waiting.extend(self.leads[antichain])

    def _behind(self, unit: int) -> set[int]:
        found: set[int] = set()
        waiting = [unit]
        while waiting:
            for each in self.successors[waiting.pop()]:
                if each not in found:
                    found.add(each)
                    waiting.append(each)
        return found

    def augmented(self, antichain: Antichain) -> set[int]:
        """The antichain, and ancestors of a member with a successor that is neither it nor its ancestor."""
        found = set(antichain)
        for unit in antichain:
            inside = self.before[unit] | {unit}
            found |= {each for each in self.before[unit] if not inside.issuperset(self.successors[each])}
        return found

    def following(self, antichain: Antichain) -> set[Antichain]:
        """Antichains after one of the augmented units is replaced by one of its successors."""
        augmented, found = self.augmented(antichain), set()
        for unit in augmented:
            for successor in self.successors[unit]:
                if successor not in antichain and not self.after[successor] & augmented:
                    moved = augmented - {unit} | {successor}
                    found.add(frozenset(kept for kept in moved if not self.after[kept] & moved))
        return found

    def closure(self, antichain: Antichain) -> set[int]:
        """The members and all that they depend on."""
        return set(antichain).union(*(self.before[unit] for unit in antichain))

    def ordered(self) -> tuple[list[set[int]], list[list[int]]]:
        """Closures by size, and for each the positions of those that lead to it, ascending."""
        closures = {antichain: self.closure(antichain) for antichain in self.leads}
        order = sorted(
            self.leads, key=lambda each: (len(closures[each]), sum(1 << unit for unit in closures[each]))
        )
        place = {antichain: position for position, antichain in enumerate(order)}
        before: list[set[int]] = [set() for _ in order]
        for position, antichain in enumerate(order):
            for following in self.leads[antichain]:
                before[place[following]] |= before[position] | {position}
        return [closures[antichain] for antichain in order], [sorted(each) for each in before]


def released_bottleneck(units: Units, machines: int, bandwidth_bytes_s: float, straight: bool) -> float:
    """Seconds of the slowest stage on exactly so many machines; straight: each stage on one. Cuts are free."""
    closures, before = AntichainWalk(units.successors).ordered()
    compute = [sum(float(units.compute_s[unit]) for unit in sorted(each)) for each in closures]
    parameters = [sum(float(units.parameter_bytes[unit]) for unit in sorted(each)) for each in closures]
    widest = 1 if straight else machines

    def stage_s(seconds: float, held: float, replicas: int) -> float:
        return (seconds + 4 * (replicas - 1) * held / (bandwidth_bytes_s * replicas)) / replicas

    best = [[inf] * (machines + 1) for _ in closures]
    for state, earlier in enumerate(before):
        for used in range(1, machines + 1):
            found = stage_s(compute[state], parameters[state], used) if used <= widest else inf
            for cut in earlier:
                for replicas in range(1, min(used - 1, widest) + 1):
                    stage = stage_s(compute[state] - compute[cut], parameters[state] - parameters[cut], replicas)
                    found = min(found, max(best[cut][used - replicas], stage))
            best[state][used] = found
    return best[-1][machines]
