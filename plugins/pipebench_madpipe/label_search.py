"""The shortest period that the estimate of some allocation meets: a lower bound on every schedule of the class."""

from collections.abc import Callable
from dataclasses import dataclass

from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import Allocation, BoolArray, Estimate, estimated_period
from pipebench_madpipe.labels import reach
from pipebench_madpipe.stage_table import RunTable

MOST_LABELS = 400_000
"""Labels for one target period, after which it counts as met: the bound is then what was proven by then."""


@dataclass(frozen=True, slots=True)
class Class:
    """The class of allocations to choose from: stages of `table` on least … most GPUs of `memory` bytes.

    cuts: positions of this table's cuts in a longer chain, where the table has only some of its cuts.
    """

    table: RunTable
    memory: int
    least: int
    most: int
    cuts: IntArray | None = None

    def on_whole_chain(self, allocation: Allocation) -> Allocation:
        """The allocation with its bounds counted in layers of the longer chain."""
        if self.cuts is None:
            return allocation
        return Allocation(tuple(int(self.cuts[bound]) for bound in allocation.bounds), allocation.special)

    @property
    def length(self) -> int:
        """Layers."""
        return int(self.table.layers.shape[1]) - 1


@dataclass(frozen=True, slots=True)
class LabelSearch:
    """What a search over target periods found.

    lower_ns: a lower bound on the estimate of every allocation.
    best: an allocation that meets the shortest period found; None where none is below the cutoff.
    """

    lower_ns: int
    best: Allocation | None
    probes: int
    labels: int


def allocations_at(
    of: Class, period: int, estimate: Estimate, wanted: int, most_labels: int = MOST_LABELS
) -> tuple[list[Allocation], int, bool]:
    """At most `wanted` allocations that meet the period; labels made; whether it is proven that none exists."""
    found, labels, bounds, special = reach(
        of.table, of.memory, period, of.least, of.most, estimate, wanted, most_labels
    )
    listed = [_allocation(of.length, bounds[i], special[i]) for i in range(max(0, found))]
    return listed, labels, found == 0


def _allocation(length: int, bounds: IntArray, special: BoolArray) -> Allocation:
    stages = int((bounds < length).sum())
    return Allocation(tuple(map(int, bounds[: stages + 1])), tuple(map(bool, special[:stages])))


def estimated_optimum(
    of: Class,
    estimate: Estimate,
    low: int,
    below: int,
    stop: Callable[[], bool] = lambda: False,
    *,
    within: int = 0,
    most_labels: int | None = None,
) -> LabelSearch:
    """The shortest period in low … below - 1 that the estimate of some allocation meets.

    This is Algorithm 1 of MadPipe as a bisection that closes. Each allocation found lowers the upper end to the
    shortest period of its own estimate. The next target is in turn just below the upper end, because the first
    allocation is often the best, and in the middle (with most_labels: a quarter below the upper end). The search
    ends with the bound proven so far when a period needs more labels than there are.

    within: width in ns at which the bracket may stay open.
    most_labels: labels of all probes together.
    """
    best: Allocation | None = None
    probes = labels = 0
    high = below
    next_to_end = True
    while low < high - within and not stop():
        room = MOST_LABELS if most_labels is None else min(MOST_LABELS, most_labels - labels)
        if room <= 0:
            break
        period = high - 1
        if not next_to_end:
            period = (low + high - 1) // 2 if most_labels is None else high - 1 - (high - low) // 4
        next_to_end = not next_to_end
        found, made, proven = allocations_at(of, period, estimate, 1, room)
        probes += 1
        labels += made
        if found:
            best = found[0]
            high = estimated_period(of.table, *best.arrays, of.memory, low, period + 1, estimate)
        elif proven:
            low = period + 1
        elif next_to_end:
            break
    return LabelSearch(low, best, probes, labels)


def proven_bound(
    of: Class,
    estimate: Estimate,
    low: int,
    below: int,
    stop: Callable[[], bool],
    *,
    within: int,
    each_labels: int,
    from_above: bool = False,
) -> LabelSearch:
    """A lower bound on the estimate of every allocation, from probes of at most each_labels labels each.

    This is for chains that are too long to close the bracket: a period far below the best costs few labels. A
    period that needs more labels counts as met.

    within: width in ns at which the bracket may stay open, except next to `below`.
    from_above: whether the first probe is next to `below`.
    """
    high = below
    probes = labels = 0
    while low < high and not stop():
        narrow = high - low <= within
        if narrow and high < below:
            break
        period = high - 1 if narrow or (from_above and probes == 0) else (low + high - 1) // 2
        _, made, proven = allocations_at(of, period, estimate, 1, each_labels)
        probes += 1
        labels += made
        if proven:
            low = period + 1
        elif narrow:
            break
        else:
            high = period
    return LabelSearch(low, None, probes, labels)
