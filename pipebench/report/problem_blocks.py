"""The rows of one problem side by side: what a table, a page and a notebook open with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipebench.bench.standings import fastest_rows
from pipebench.documents.units import quantity
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row, planner_name
from pipebench.report.units import seconds

REGIMES: tuple[RegimeMode, ...] = ("sync", "async")


@dataclass(frozen=True, slots=True)
class Contender:
    """One entrant on one problem: its row in each regime in which it ran.

    repeats: whether the rows are those of others, which stand above.
    """

    name: str
    rows: Mapping[RegimeMode, Row]
    repeats: bool = False

    @property
    def any_row(self) -> Row:
        """One of its rows: what they say of the problem is the same."""
        return next(iter(self.rows.values()))

    @property
    def yardstick(self) -> bool:
        """Whether the suite put it beside the others."""
        return self.any_row.yardstick

    @property
    def marked_name(self) -> str:
        """The name as tables and pictures show it: a yardstick has a mark."""
        return _marked(self.name, self.yardstick)


Entrant = tuple[Contender, Row]
"""A contender with its row in one regime."""


@dataclass(frozen=True, slots=True)
class ProblemBlock:
    """All contenders on one problem in the order of the comparison, yardsticks last.

    regimes: in which somebody ran. best: by regime the fastest of those who are compared, where in some regime
    several are.
    """

    contenders: tuple[Contender, ...]
    regimes: tuple[RegimeMode, ...]
    best: Mapping[RegimeMode, Row]

    @property
    def rows(self) -> list[Row]:
        """All rows, those of each contender together."""
        return [row for each in self.contenders for row in each.rows.values()]

    @property
    def row(self) -> Row:
        """One of the rows: what they say of the problem is the same."""
        return self.contenders[0].any_row

    def ranked(self, mode: RegimeMode) -> list[Entrant]:
        """In one regime all whose plan runs, the fastest first."""
        found = [(each, each.rows[mode]) for each in self.contenders if mode in each.rows]
        running = [(each, row) for each, row in found if row.status == "ok" and row.simulated_s]
        return sorted(running, key=lambda entrant: entrant[1].simulated_s or 0.0)

    def bounds(self) -> dict[RegimeMode, Row]:
        """By regime a row with the bound that holds for every plan that splits no operator."""
        found: dict[RegimeMode, Row] = {}
        for row in self.rows:
            if row.bound_s and (row.regime not in found or row.bound_s > (found[row.regime].bound_s or 0.0)):
                found[row.regime] = row
        return found

    def class_bounds(self) -> dict[bool, dict[RegimeMode, Row]]:
        """By class, whether it holds plans that recompute, and regime a row with the suite's own bound over it."""
        found: dict[bool, dict[RegimeMode, Row]] = {}
        for row in self.rows:
            if row.class_bound_recomputes is not None and row.class_bound_s:
                found.setdefault(row.class_bound_recomputes, {})[row.regime] = row
        return found


def problem_blocks(rows: Iterable[Row]) -> list[ProblemBlock]:
    """One for each problem, whatever its regime, in the order in which they first occur."""
    return [_block(same) for same in rows_by_problem(rows).values()]


def rows_by_problem(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """By workload_id, in the order in which they first occur."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.workload_id, []).append(row)
    return found


def _block(rows: Sequence[Row]) -> ProblemBlock:
    contenders = tuple(_contenders(sorted(rows, key=lambda row: row.yardstick)))
    ran = {row.regime for each in contenders for row in each.rows.values()}
    best = {row.regime: row for row in fastest_rows(rows).values()}
    return ProblemBlock(contenders, tuple(mode for mode in REGIMES if mode in ran), best)


def _contenders(rows: Sequence[Row]) -> list[Contender]:
    """Rows of one entrant together. What it did twice in one regime (failures differ) is a contender each."""
    found: dict[tuple[str, bool, int], dict[RegimeMode, Row]] = {}
    for row in rows:
        key = _name(row), row.yardstick
        number = 0
        while row.regime in found.get((*key, number), {}):
            number += 1
        found.setdefault((*key, number), {})[row.regime] = row
    return [
        Contender(name, {mode: by_regime[mode] for mode in REGIMES if mode in by_regime})
        for (name, _, _), by_regime in found.items()
    ]


def _name(row: Row) -> str:
    name = planner_name(row.planner, coarsen=row.coarsen)
    return f"{name} x {row.entered_scheduler}" if row.entered_scheduler else name


def contender_title(row: Row) -> str:
    """The name of its contender as tables show it."""
    return _marked(_name(row), row.yardstick)


def _marked(name: str, yardstick: bool) -> str:
    return f"{name} †" if yardstick else name


def same_plans(entrants: Iterable[Entrant]) -> list[list[Entrant]]:
    """Those of one regime with the same plan in the same order together; each group where its first one stands."""
    found: dict[tuple[str | None, ...], list[Entrant]] = {}
    for each, row in entrants:
        known = row.plan_id and row.schedule_id
        found.setdefault((row.plan_id, row.schedule_id) if known else (each.name,), []).append((each, row))
    return list(found.values())


def names_of(entrants: Iterable[Entrant]) -> str:
    """Their names, by commas."""
    return ", ".join(contender.marked_name for contender, _ in entrants)


def cut_words(row: Row) -> str:
    """Where a row cuts the model: stages, branches, replicas, devices left idle. `-` for a row without a plan."""
    if row.stages is None:
        return "-"
    words = quantity(row.stages, "stage")
    counts = set(row.replicas)
    if counts and counts != {1}:
        words += f" x {counts.pop()}" if len(counts) == 1 else f" x {min(counts)}-{max(counts)}"
    if row.width and row.width > 1:
        words += f", {row.width} branches"
    if row.devices_used and row.devices_used < sum(row.replicas):
        words += f" on {row.devices_used} devices"
    if row.devices_used and row.devices_used < row.devices:
        words += f", {row.devices - row.devices_used} idle"
    return words


def is_data_parallel(row: Row) -> bool:
    """Whether the plan is one stage on all devices."""
    return row.stages == 1 and row.replicas == (row.devices,)


def share_of_bound(row: Row) -> float | None:
    """bound / simulated time, at most 1: the part of what is possible at best that the plan reaches.

    None without a bound, or with a gap that no time has.
    """
    return None if row.gap is None or row.gap <= -1 else min(1.0, 1 / (1 + row.gap))


def class_gap(row: Row) -> float | None:
    """How much slower the plan is than the bound over the class of plans that it is of."""
    if row.class_bound_s is None or not row.simulated_s or row.class_bound_s <= 0:
        return None
    return max(0.0, row.simulated_s / row.class_bound_s - 1)


def is_bound_of_planner(row: Row) -> bool:
    """Whether the bound over its class is what the planner says that it proved: nobody has looked at the proof."""
    return row.class_bound_s is not None and row.class_bound_recomputes is None


def class_words(row: Row) -> str:
    """The bound over the class of a row's plan: seconds, what binds, which class, and who proved it."""
    kind = f" ({row.class_bound_kind})" if row.class_bound_kind else ""
    prover = f", proven by {row.class_bound_by}" if row.class_bound_by else ""
    prover += ", as it says" if prover and is_bound_of_planner(row) else ""
    return f"bound {seconds(row.class_bound_s)}{kind} over {row.class_bound_scope or 'its class'}{prover}"
