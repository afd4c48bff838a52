"""Two sets of results side by side, row by row; quality exactly, search times only as information."""

from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Literal

from pipebench.bench.difference.operands import ResultsSide
from pipebench.bench.difference.structure import Change
from pipebench.bench.machine.environment import search_refusal, suite_notice
from pipebench.bench.standings.cells import nanoseconds
from pipebench.bench.standings.statistics import shifted_geometric_mean
from pipebench.documents.decoding import collector_paused
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row, planner_name
from pipebench.domain.value import Value

Outcome = Literal["same", "better", "worse", "changed"]
EXACT = (
    "status",
    "verdict",
    "fit",
    "termination",
    "simulated_s",
    "estimated_s",
    "claimed_s",
    "bound_s",
    "class_bound_s",
    "bubble",
    "memory_bytes",
    "smallest_memory_bytes",
    "bound_memory_bytes",
    "stages",
    "depth",
    "micro_batch",
    "replicas",
    "in_flight",
    "counters",
    "plan_id",
    "schedule_id",
)
"""Columns that do not depend on the machine; those that only follow from them (gap, throughput) are left out."""


class RowLabel(Value, frozen=True, kw_only=True):
    """Which trial a row is about."""

    profile: str
    cluster: str
    place: str
    devices: int
    mini_batch: int
    regime: RegimeMode
    planner: str
    scheduler: str
    adapted: bool
    repetition: int
    problem_id: str
    coarsen: int = 0

    @property
    def planned_by(self) -> str:
        """The planner as tables name it."""
        return planner_name(self.planner, self.adapted, self.coarsen)


class RowChange(Value, frozen=True, kw_only=True):
    """A trial that both sets have.

    outcome `better`, `worse`: it succeeded where it failed before, or its plan is faster, in whole ns;
    `changed`: equally fast, but another exact column differs. search_ratio: after / before in CPU, None where
    search times must not be compared.
    """

    row: RowLabel
    outcome: Outcome
    value_before_s: float | None
    value_after_s: float | None
    changes: tuple[Change, ...]
    search_ratio: float | None


class ResultsDifference(Value, frozen=True, kw_only=True):
    """What changed from one set of results to another.

    search_ratio: geometric mean of after / before over `search_count` trials; search_refused: why there is none.
    """

    before: str
    after: str
    rows: tuple[RowChange, ...]
    only_before: tuple[RowLabel, ...]
    only_after: tuple[RowLabel, ...]
    search_ratio: float | None
    search_count: int
    search_refused: str
    notices: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether both have the same trials with the same exact columns."""
        return not (self.only_before or self.only_after) and all(row.outcome == "same" for row in self.rows)


_exact, _label_fields = attrgetter(*EXACT), attrgetter(*RowLabel.__struct_fields__)


def compare_results(before: ResultsSide, after: ResultsSide) -> ResultsDifference:
    """The differences between two sets of rows, matched by problem, planner, scheduler and repetition.

    A trial that failed before it had a schedule names no scheduler; it is matched with what is left of its
    planner on that problem.
    """
    with collector_paused():
        pairs, only_before, only_after = _match_rows(before.rows, after.rows)
        refused = search_refusal([*before.rows, *after.rows])
        rows = tuple(_row_change(old, new, compared=not refused) for old, new in pairs)
    ratios = [row.search_ratio for row in rows if row.search_ratio is not None]
    return ResultsDifference(
        before=before.source,
        after=after.source,
        rows=rows,
        only_before=tuple(map(_label, only_before)),
        only_after=tuple(map(_label, only_after)),
        search_ratio=shifted_geometric_mean(ratios),
        search_count=len(ratios),
        search_refused=refused,
        notices=(
            *before.notices,
            *after.notices,
            *_notices([*before.rows, *after.rows], only_before, only_after),
        ),
    )


def _match_rows(before: Sequence[Row], after: Sequence[Row]) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    pairs: list[tuple[int, int]] = []
    left, right = list(range(len(before))), list(range(len(after)))
    for named in (True, False):
        waiting: dict[Hashable, list[int]] = {}
        for position in right:
            waiting.setdefault(_key(after[position], named), []).append(position)
        for position in left:
            same = waiting.get(_key(before[position], named), [])
            for other in same:
                if named or not (before[position].entered_scheduler and after[other].entered_scheduler):
                    pairs.append((position, other))
                    same.remove(other)
                    break
        taken, given = {i for i, _ in pairs}, {j for _, j in pairs}
        left = [i for i in left if i not in taken]
        right = [j for j in right if j not in given]
    matched = [(before[i], after[j]) for i, j in sorted(pairs)]
    return matched, [before[i] for i in left], [after[j] for j in right]


def _key(row: Row, named: bool) -> Hashable:
    return (
        row.problem_id,
        row.planner,
        row.adapted,
        row.coarsen,
        row.repetition,
        row.entered_scheduler if named else None,
    )


def _row_change(before: Row, after: Row, compared: bool) -> RowChange:
    was, now = _exact(before), _exact(after)
    changes = (
        ()
        if was == now
        else tuple(
            Change(field=name, before=one, after=other)
            for name, one, other in zip(EXACT, was, now, strict=True)
            if one != other
        )
    )
    old, new = _values(before, after)
    took = before.search_cpu_s, after.search_cpu_s
    ratio = took[1] / took[0] if compared and took[0] and took[1] else None
    return RowChange(
        row=_label(after if after.scheduler else before),
        outcome=_outcome(before, after, old, new, bool(changes)),
        value_before_s=old,
        value_after_s=new,
        changes=changes,
        search_ratio=ratio,
    )


def _values(before: Row, after: Row) -> tuple[float | None, float | None]:
    """Both simulated, else both estimated: never one against the other. A failure has no value."""
    rung = "estimated_s"
    if all(row.simulated_s is not None or row.status != "ok" for row in (before, after)):
        rung = "simulated_s"
    old, new = (getattr(row, rung) if row.status == "ok" else None for row in (before, after))
    return old, new


def _outcome(before: Row, after: Row, old: float | None, new: float | None, changed: bool) -> Outcome:
    if (before.status == "ok") != (after.status == "ok"):
        return "better" if after.status == "ok" else "worse"
    if old is not None and new is not None and nanoseconds(old) != nanoseconds(new):
        return "better" if new < old else "worse"
    return "changed" if changed else "same"


def _label(row: Row) -> RowLabel:
    return RowLabel(**dict(zip(RowLabel.__struct_fields__, _label_fields(row), strict=True)))


def _notices(rows: Iterable[Row], only_before: Iterable[Row], only_after: Iterable[Row]) -> Iterable[str]:
    if notice := suite_notice(rows):
        yield notice

    def names(rows: Iterable[Row]) -> set[tuple[object, ...]]:
        return {(row.profile, row.cluster, row.devices, row.mini_batch, row.regime) for row in rows}

    alike = names(only_before) & names(only_after)
    if alike:
        what = "problem has its name" if len(alike) == 1 else "problems have their names"
        yield f"{len(alike)} {what} in both, but its profile, cluster, optimizer or pins changed"
