"""The tables of a comparison: a block for each problem, with rounds and numbered notices."""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import get_args

from msgspec.structs import replace
from rich.console import Console

from pipebench.bench.explanation import Explainer
from pipebench.bench.machine.environment import machine_difference
from pipebench.bench.score import prediction_error
from pipebench.bench.standings import standings
from pipebench.bench.standings.statistics import TRIAL_LIMIT_S, tau_b
from pipebench.documents.units import quantity, readable_bytes
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row
from pipebench.report.problem_blocks import ProblemBlock, problem_blocks
from pipebench.report.problem_names import ProblemNames
from pipebench.report.text.comparisons.blocks import Legend, fitting_table
from pipebench.report.text.comparisons.notes import Notes, who_by_text
from pipebench.report.text.comparisons.standings import print_standings
from pipebench.report.text.comparisons.why import MOST_EXPLAINED, PlanOf, why_lines
from pipebench.report.text.tables import print_line, print_table
from pipebench.report.units import percent, rate, with_readable_bytes

SAME = ("status", "plan_id", "schedule_id", "simulated_s", "estimated_s", "counters")
RESTLESS = "rounds differ in plan or status: the planner is not deterministic for one seed"


def merged_rounds(rows: Iterable[Row]) -> tuple[Row, ...]:
    """One row for each trial, in order. The worst round stands for all: a failure, else the slowest plan.

    Its search times are the samples of all rounds; where rounds differ a notice says so.
    """
    rounds: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        entrant = row.planner, row.entered_scheduler, row.adapted, row.coarsen
        key = row.problem_id, *entrant, row.status == "ok" or row.repetition
        rounds.setdefault(key, []).append(row)
    return tuple(_merge_rounds(same) if len(same) > 1 else same[0] for same in rounds.values())


def _merge_rounds(same: list[Row]) -> Row:
    failed = [row for row in same if row.status != "ok"]
    worst = failed[0] if failed else max(same, key=lambda row: row.simulated_s or row.estimated_s or 0.0)
    samples = tuple(sample for row in same for sample in row.search_samples)
    notices = dict.fromkeys(notice for row in same for notice in row.notices)
    if any(getattr(row, name) != getattr(worst, name) for row in same for name in SAME):
        notices[RESTLESS] = None
    if not samples or failed:
        return replace(worst, notices=tuple(notices))
    return replace(
        worst,
        notices=tuple(notices),
        search_samples=samples,
        search_cpu_s=statistics.median(cpu_s for cpu_s, _ in samples),
        search_wall_s=statistics.median(wall_s for _, wall_s in samples),
    )


FEWEST_RANKED = 3


def print_rows(
    console: Console,
    rows: Iterable[Row],
    cached: Collection[str] = (),
    why: Callable[[ProblemBlock], Sequence[str]] = lambda _: (),
) -> None:
    """Print all rows, a block for each problem with what went wrong in it, and at the end each notice once.

    cached: keys of rows that come from a store. why: lines that say why the rows of a block differ.
    """
    rows = merged_rounds(rows)
    blocks = problem_blocks(rows)
    notes = Notes([row for block in blocks for row in block.rows], cached)
    names = ProblemNames(rows)
    legend = Legend()
    for block in blocks:
        print_line(console, heading(block, names), "bold")
        print_table(console, fitting_table(console, block, notes, legend))
        for line in remarks(block, why(block), names):
            print_line(console, line)
        console.print()
    for line in (*notes.lines(), *legend.lines(blocks)):
        print_line(console, line)


def print_comparison(
    console: Console,
    rows: Sequence[Row],
    plan_of: PlanOf,
    explainer: Explainer,
    cached: Collection[str] = (),
    timeout_s: float = TRIAL_LIMIT_S,
) -> None:
    """Print all that a comparison says: the blocks, why their rows differ where problems are few, and standings.

    timeout_s: the limit of a trial, by which an unsolved search counts in the standings.
    """
    problems = len({row.workload_id for row in rows})
    few = problems <= MOST_EXPLAINED
    print_rows(console, rows, cached, lambda block: why_lines(block, explainer, plan_of) if few else ())
    if problems > 1:
        print_standings(console, standings(rows, timeout_s=timeout_s))


def remarks(block: ProblemBlock, why: Sequence[str], names: ProblemNames) -> list[str]:
    """What is said below the table of a problem: what its short name leaves out, a bound over a class, failures,
    measurements, why rows differ.
    """
    compared = [row for row in block.rows if not row.yardstick]
    whole = names.whole(block.row)
    return [
        *([f"  {whole}"] if whole else []),
        *class_limits(block),
        *failures(block.rows),
        *machines(block.rows),
        *agreement(compared),
        *replays(compared),
        *why,
    ]


def heading(block: ProblemBlock, names: ProblemNames) -> str:
    """What a block is about: model, devices, mini-batch, and what no plan can beat, or what memory each needs."""
    return f"{names.problem(block.row)}: {_limit(block)}"


def _limit(block: ProblemBlock) -> str:
    """The proven bounds as samples/s, one for all regimes where they agree; where devices have less, of memory."""
    if needed := _lacking_memory(block.rows):
        return f"every plan needs {readable_bytes(needed)} on some device"
    said = _by_regime((mode, row.mini_batch, row.bound_s, row.bound_kind) for mode, row in block.bounds().items())
    return f"no plan beats {said}" if said else "no bound"


def _lacking_memory(rows: Sequence[Row]) -> int:
    """What the fullest device of every plan holds, where no row has a plan and each device has less; else 0."""
    needs = [
        row.bound_memory_bytes or 0
        for row in rows
        if row.status != "ok" and (row.bound_memory_bytes or 0) > (row.device_memory_bytes or math.inf)
    ]
    return min(needs) if len(needs) == len(rows) else 0


def class_limits(block: ProblemBlock) -> list[str]:
    """The suite's bounds over classes of plans that rows are of, as samples/s, one line for each class."""
    lines = []
    for recomputes, rows in sorted(block.class_bounds().items(), reverse=True):
        said = _by_regime(
            (mode, row.mini_batch, row.class_bound_s, row.class_bound_kind) for mode, row in rows.items()
        )
        which = "" if recomputes else " without recomputation"
        lines.append(f"  no plan of stages in a row{which} beats {said}")
    return lines


def _by_regime(bounds: Iterable[tuple[RegimeMode, int, float | None, str | None]]) -> str:
    """Samples/s of bounds with what binds, by regime; one where all agree. Of each: regime, mini-batch, bound."""
    found = {mode: f"{rate(size / bound_s)} samples/s ({kind})" for mode, size, bound_s, kind in bounds if bound_s}
    said = {mode: found[mode] for mode in get_args(RegimeMode) if mode in found}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return ", ".join(f"{text} in {mode}" for mode, text in said.items())


def failures(rows: Sequence[Row]) -> list[str]:
    """One line for each reason of trials that failed, with all whom it concerns: planner, scheduler where the user
    named it, and where they failed for several reasons, the regime.
    """
    wrong = [
        (row, with_readable_bytes(row.reason.removeprefix(f"{row.planner} ")))
        for row in rows
        if row.status != "ok" and row.reason
    ]
    reasons: dict[str, set[str]] = {}

    def name(row: Row) -> str:
        return f"{row.planner} x {row.named_scheduler}" if row.named_scheduler else row.planner

    for row, reason in wrong:
        reasons.setdefault(name(row), set()).add(reason)

    def who(row: Row) -> str:
        return f"{name(row)} in {row.regime}" if len(reasons[name(row)]) > 1 else name(row)

    said = who_by_text((who(row), reason) for row, reason in wrong)
    return [f"  {names}: {reason}" for reason, names in said.items()]


def machines(rows: Sequence[Row]) -> list[str]:
    """That search times must not be compared, where rows of one problem come from machines of different kinds."""
    differ = machine_difference(row for row in rows if row.search_cpu_s is not None)
    return [f"  search times are not compared: {differ}"] if differ else []


def agreement(rows: Sequence[Row]) -> list[str]:
    """Whether simulation and measurement rank the plans alike, where three or more were measured."""
    both = [(row.simulated_s, row.measured_s) for row in rows]
    known = [
        (round(one * 1e9), round(other * 1e9)) for one, other in both if one is not None and other is not None
    ]
    tau = tau_b(*map(list, zip(*known, strict=True))) if len(known) >= FEWEST_RANKED else None
    if tau is None:
        return []
    plans = quantity(len(known), "plan")
    return [f"  rank agreement of simulated and measured times (Kendall's tau-b): {tau:.2f}, {plans}"]


def replays(rows: Sequence[Row]) -> list[str]:
    """How far off simulations with the measured times of tasks are: the part of the errors that is not the
    profile's.
    """
    errors = [prediction_error(row.replayed_s, row.measured_s) for row in rows]
    known = sorted(error for error in errors if error is not None)
    if not known:
        return []
    said = percent(known[0]) if len(known) == 1 else f"{percent(known[0])} to {percent(known[-1])}"
    return [f"  with the measured times of tasks the simulation is {said} off (messages, all-reduces, idle time)"]
