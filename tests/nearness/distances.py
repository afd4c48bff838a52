"""Tables of how far plans are from bounds."""

from collections.abc import Iterable, Sequence
from math import exp, log

import msgspec


class Distance(msgspec.Struct, frozen=True):
    """One problem.

    best_ns: the shortest mini-batch known; None where no plan is. bound_ns: over every plan, with what binds.
    class_bound_ns: over stages in a row, recomputing or not; None where the suite has none.
    in_class: whether the plan is one of stages in a row. optimal: whether every plan was looked at.
    certify_s, check_s: what making a certificate of plan and bound took, and checking it alone; None where there
    is none. refused: why not.
    """

    problem: str
    group: str
    mode: str
    best_ns: int | None
    bound_ns: int
    bound_kind: str
    class_bound_ns: int | None
    in_class: bool
    optimal: bool = False
    certify_s: float | None = None
    check_s: float | None = None
    refused: str = ""

    @property
    def of_bound(self) -> float | None:
        """Times the bound over every plan."""
        return None if self.best_ns is None else self.best_ns / self.bound_ns

    @property
    def of_class(self) -> float | None:
        """Times the bound over stages in a row, where the plan is of these."""
        if self.best_ns is None or self.class_bound_ns is None or not self.in_class:
            return None
        return self.best_ns / self.class_bound_ns


def mean(ratios: Sequence[float]) -> float:
    """Geometric."""
    return exp(sum(map(log, ratios)) / len(ratios))


def line(name: str, rows: Sequence[Distance]) -> str:
    """Problems, those with a plan, the mean and the largest ratio to each bound."""
    ratios = [row.of_bound for row in rows if row.of_bound is not None]
    classes = [row.of_class for row in rows if row.of_class is not None]
    cells = [name, str(len(rows)), str(len(ratios)), str(sum(row.optimal for row in rows))]
    cells += [f"{mean(ratios):.3f}", f"{max(ratios):.2f}"] if ratios else ["-", "-"]
    cells += [str(len(classes)), f"{mean(classes):.3f}", f"{max(classes):.2f}"] if classes else ["0", "-", "-"]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "with a plan | optima | best / bound | worst | stages in a row | best / class bound | worst |",
    "---:|---:|---:|---:|---:|---:|---:|",
)


def tables(rows: Sequence[Distance]) -> str:
    """By group and regime, and by what binds, in Markdown."""
    groups = [(f"{group}, {mode}", _of(rows, group=group, mode=mode)) for group, mode in _keys(rows)]
    kinds = sorted({row.bound_kind for row in rows})
    by_kind = [(kind, [row for row in rows if row.bound_kind == kind]) for kind in kinds]
    made: list[str] = []
    for first, parts in (("problems", [*groups, ("all", list(rows))]), ("what binds", by_kind)):
        made += [f"| {first} | number | {HEAD[0]}", f"|---|---:|{HEAD[1]}"]
        made += [*(line(name, part) for name, part in parts), ""]
    return "\n".join([*made, certificates(rows)])


def certificates(rows: Sequence[Distance]) -> str:
    """How many plans have one that was checked, and how long checking took."""
    planned = [row for row in rows if row.best_ns is not None]
    times = [(row.check_s, row.certify_s) for row in planned if row.check_s is not None and row.certify_s]
    said = [f"{len(times)} of {len(planned)} plans have a certificate that the checker accepts."]
    if times:
        slow = sum(check_s >= 1.0 and check_s >= 0.1 * certify_s for check_s, certify_s in times)
        longest_s = max(check_s for check_s, _ in times)
        said.append(
            f"Checking took {longest_s:.2f} s at most; in {slow} a second and a tenth of `certify` or more."
        )
    reasons = dict.fromkeys(row.refused for row in planned if row.refused)
    return " ".join([*said, *(f"None: {reason}." for reason in reasons)])


def _keys(rows: Iterable[Distance]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row.group, row.mode) for row in rows))


def _of(rows: Iterable[Distance], group: str, mode: str) -> list[Distance]:
    return [row for row in rows if (row.group, row.mode) == (group, mode)]
