"""The acyclic graph of groups of nodes, kept acyclic while groups are joined."""

from collections.abc import Iterable, Sequence

from pipebench.domain.topology import topological_order

Tensors = frozenset[int]


class Quotient:
    """Groups 0, 1, … of nodes; a union goes by the number of its first group. Every group stays convex.

    after, before: for each group its neighbours, and the tensors between them.
    place: positions in a topological order. A join moves only the groups between the two.
    """

    def __init__(self, after: Sequence[dict[int, Tensors]]) -> None:
        self.after = [dict(each) for each in after]
        self.before: list[dict[int, Tensors]] = [{} for _ in after]
        for group, readers in enumerate(after):
            for reader, tensors in readers.items():
                self.before[reader][group] = tensors
        self.order = topological_order([sorted(each) for each in after], [str(g) for g in range(len(after))])
        self.place = [0] * len(after)
        self._at: list[int] = []
        self._number(self.order)

    def _number(self, order: Iterable[int]) -> None:
        self._at = list(order)
        for position, group in enumerate(self._at):
            self.place[group] = position

    def settle(self) -> list[int]:
        """Number the positions afresh. Returns the groups that are left, in topological order."""
        self._number(group for group in self._at if group >= 0)
        return list(self._at)

    def between(self, first: int, second: int) -> set[int] | None:
        """Descendants of `first` placed before `second`; None when one of them leads to `second`.

        `first` and `second`, in topological order, can be joined unless the answer is None: then no path leaves
        their union and comes back (convexity: RaNNC, section III-B).
        """
        last = self.place[second]
        found: set[int] = set()
        stack = [group for group in self.after[first] if group != second]
        while stack:
            group = stack.pop()
            if group in found or self.place[group] > last:
                continue
            if group == second:
                return None
            found.add(group)
            stack.extend(self.after[group])
        return found

    def join(self, one: int, other: int) -> int:
        """Join two groups that `between` allows; the number of the union."""
        first, second = (one, other) if self.place[one] < self.place[other] else (other, one)
        behind = self.between(first, second)
        assert behind is not None, "the union would not be convex"
        self._move(first, second, behind)
        for ours, theirs in ((self.after, self.before), (self.before, self.after)):
            for group, tensors in ours[second].items():
                theirs[group].pop(second, None)
                if group != first:
                    ours[first][group] = ours[first].get(group, frozenset()) | tensors
                    theirs[group][first] = ours[first][group]
            ours[first].pop(second, None)
            ours[second] = {}
        return first

    def _move(self, first: int, second: int, behind: set[int]) -> None:
        """Put the union behind all groups that `first` does not lead to, and before all that it leads to."""
        low, high = self.place[first], self.place[second]
        if not behind:
            self._at[low] = -1
            self._at[high] = first
            self.place[first] = high
            return
        inside = [group for group in self._at[low + 1 : high] if group >= 0]
        moved = [group for group in inside if group not in behind]
        moved += [first, *(group for group in inside if group in behind)]
        self._at[low : high + 1] = moved + [-1] * (high + 1 - low - len(moved))
        for position, group in enumerate(moved, start=low):
            self.place[group] = position

    def descendants(self, groups: Sequence[int]) -> list[int]:
        """For each group, the bit set of its descendants. `groups` are in topological order."""
        bits = [0] * len(self.after)
        for group in reversed(groups):
            for successor in self.after[group]:
                bits[group] |= bits[successor] | 1 << successor
        return bits
