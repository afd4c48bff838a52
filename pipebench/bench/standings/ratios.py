"""Two entrants against each other on a set of problems: the mean ratio of their times, and who solved what."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pipebench.bench.standings.cells import EntrantCell
from pipebench.bench.standings.statistics import shifted_geometric_mean


@dataclass(frozen=True, slots=True)
class TimeRatio:
    """ratio: geometric mean of first / second over the problems that both solved, None where there is none.

    both, only_first, only_second, neither: problems by who solved them. untaken: problems that one of the two does
    not take. unrun: others on which one of the two has no row. Both count nowhere else.
    """

    ratio: float | None
    both: int
    only_first: int
    only_second: int
    neither: int
    untaken: int
    unrun: int


def time_ratio(pairs: Iterable[tuple[EntrantCell | None, EntrantCell | None]]) -> TimeRatio:
    """The ratio over problems of one regime. pairs: what the two did on each problem, None: it did not run."""
    ratios = []
    solved: Counter[tuple[bool, bool]] = Counter()
    untaken = unrun = 0
    for first, second in pairs:
        if "unsupported" in (each.status for each in (first, second) if each is not None):
            untaken += 1
            continue
        if first is None or second is None:
            unrun += 1
            continue
        solved[first.value_ns is not None, second.value_ns is not None] += 1
        if first.value_ns is not None and second.value_ns is not None:
            ratios.append(max(first.value_ns, 1) / max(second.value_ns, 1))
    return TimeRatio(
        ratio=shifted_geometric_mean(ratios),
        both=len(ratios),
        only_first=solved[True, False],
        only_second=solved[False, True],
        neither=solved[False, False],
        untaken=untaken,
        unrun=unrun,
    )
