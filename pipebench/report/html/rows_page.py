"""The page of a comparison, a suite or a store, and what it tells of each row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from markupsafe import Markup
from rich.text import Text

from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.bench.standings import best_rows, fastest_rows, standings
from pipebench.check import require_ordered
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.manager import Host
from pipebench.report.chart.plots import quality_svg
from pipebench.report.chart.stage_graph import stage_graph_svg
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.html.template import page, picture
from pipebench.report.pattern import pattern_of, pattern_svg
from pipebench.report.pictures import plan_gantt, title_of
from pipebench.report.problem_blocks import Contender, ProblemBlock, problem_blocks
from pipebench.report.rows import COLUMNS, STYLES, RowCell, cells, ladder, problem_of
from pipebench.report.text.blocks import Column, Legend, best_contender, columns_of
from pipebench.report.text.comparison import heading, merged_rounds
from pipebench.report.text.notes import Notes
from pipebench.report.text.plans import FIGURES, OPERATORS, operators, stage_figures
from pipebench.report.text.standings import COLUMNS as STANDING_COLUMNS
from pipebench.report.text.standings import explanations, figures
from pipebench.report.text.standings import heading as standings_heading
from pipebench.report.units import gigabytes, seconds, with_readable_bytes

PICTURES_BYTES = 600_000
"""Of all pictures on a page together; rows beyond say how to draw theirs."""
SMALLEST_PICTURE = 4000
MOST_BLOCKS = 60
"""Problems that a page opens with; more are in the table of all rows."""
LEFT_OUT = "its timeline is left out to keep the page small: pipebench show draws it, with --picture"
STAGES_BYTES = 1_500_000
"""Of all tables of stages."""


class Plans(Protocol):
    """Finds the plan behind a row, with its problem and schedule; None where there is none."""

    def __call__(self, row: Row) -> PlannedProblem | None:
        """The plan of that row."""


@dataclass(frozen=True, slots=True)
class RowEntry:
    """One row, ready to be laid out."""

    id: str
    row: Row
    problem: str
    style: str
    cells: list[RowCell]
    reason: str
    ladder: list[tuple[str, str, str]]
    stages: list[list[str]]
    pictures: list[Markup]
    no_picture: str
    facts: list[tuple[str, str]]
    command: str
    stage_columns: tuple[str, ...] = (*FIGURES, OPERATORS)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table. id: the entry that it leads to. best: whether it repeats the fastest of its problem."""

    id: str
    row: Row
    problem: str
    cells: list[RowCell]
    best: bool = False


class Entries:
    """Entries of a page, pictures while there is room. host services simulate what is drawn."""

    def __init__(self, plans: Plans, services: HostServices) -> None:
        self._plans = plans
        self._services = services
        self._room = PICTURES_BYTES
        self._stages_room = STAGES_BYTES

    def entry(self, number: int, row: Row, command: str) -> RowEntry:
        """The entry of a row; its anchor is its number."""
        planned = self._plans(row) if row.status == "ok" else None
        missing = _trouble(planned) if planned else ""
        stages = self._stages(planned) if planned and not missing else []
        pictures, missing = self._pictures(planned) if planned and not missing else ([], missing)
        return RowEntry(
            id=f"row-{number}",
            row=row,
            problem=problem_of(row),
            style=STYLES.get(row.status, "failed"),
            cells=cells(row),
            reason=with_readable_bytes(row.reason),
            ladder=ladder(row),
            stages=stages,
            pictures=pictures,
            no_picture=missing,
            facts=list(_facts(row)),
            command=command,
        )

    def _stages(self, planned: PlannedProblem) -> list[list[str]]:
        if self._stages_room <= 0 or planned.schedule is None:
            return []
        problem, plan = planned.problem, planned.plan
        figures = stage_figures(problem, plan, judge(problem, plan, planned.schedule))
        table = [[*line, operators(stage.operators)] for line, stage in zip(figures, plan.stages, strict=True)]
        self._stages_room -= sum(len(text) + 9 for line in table for text in line)
        return table

    def _pictures(self, planned: PlannedProblem) -> tuple[list[Markup], str]:
        """Timeline and stage graph, or where to get them."""
        if planned.schedule is None:
            return [], ""
        if self._room < SMALLEST_PICTURE:
            return [], LEFT_OUT
        problem, plan, schedule = planned.problem, planned.plan, planned.schedule
        try:
            drawn = [self._timeline(planned)]
        except PipebenchError as error:
            return [], f"no timeline: {error}"
        if len(plan.stages) > 1:
            verdict = judge(problem, plan, schedule)
            drawn.append(stage_graph_svg(problem, plan, verdict, "stages, and what one micro-batch sends"))
        size = sum(map(len, drawn))
        if size > self._room:
            return [], LEFT_OUT
        self._room -= size
        return [picture(svg) for svg in drawn], ""

    def _timeline(self, planned: PlannedProblem) -> str:
        """One mini-batch, or one period."""
        title = title_of(planned)
        if isinstance(planned.schedule, PeriodicSchedule):
            return pattern_svg(pattern_of(planned.problem, planned.plan, planned.schedule), title)
        return gantt_svg([plan_gantt(planned, self._services)], title, most_hints=0)


def _trouble(planned: PlannedProblem) -> str:
    """Why nothing of the plan can be shown; empty where it can."""
    try:
        if planned.schedule is not None:
            require_ordered(planned.problem, planned.plan, planned.schedule)
    except PipebenchError as error:
        return f"no timeline: {error.message}"
    return ""


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """What stands nowhere else, where it is known."""
    yield "planner", f"{row.planner}, {row.fidelity or 'fidelity not said'}, {row.distribution} {row.version}"
    if row.bound_s is not None:
        yield "bound", f"{seconds(row.bound_s)} ({row.bound_kind})"
    if row.class_bound_s is not None:
        yield "bound of its class", f"{seconds(row.class_bound_s)} ({row.class_bound_scope})"
    if row.claimed_native is not None:
        yield "claimed, in its own unit", f"{row.claimed_native:g} {row.claimed_unit}"
    if row.stages is not None:
        sizes = ",".join(map(str, sorted(set(row.micro_batch))))
        yield "plan", f"{row.stages} stages, depth {row.depth}, micro-batch {sizes}"
    if row.peak_memory_bytes:
        peaks = ", ".join(f"gpu{device} {gigabytes(held)}" for device, held in row.peak_memory_bytes.items())
        yield "peak memory", peaks
    if row.search_cpu_s is not None:
        cold = f", {seconds(row.search_cold_s)} the first time" if row.search_cold_s is not None else ""
        yield "search", f"{seconds(row.search_cpu_s)} CPU, {seconds(row.search_wall_s)} wall{cold}"
    if row.counters:
        yield "work", ", ".join(f"{name} {amount:,}" for name, amount in row.counters.items())


def rows_page(
    host: Host,
    rows: Iterable[Row],
    plans: Plans,
    repeat: Callable[[Row], str],
    title: str,
    *,
    source: str = "",
    command: str = "",
) -> str:
    """The whole page. repeat: the command that runs a row again."""
    shown = merged_rounds(rows)
    made = Entries(plans, HostServices(host))
    entries = [made.entry(number, row, repeat(row)) for number, row in enumerate(shown, 1)]
    lines = _lines(entries)
    blocks = problem_blocks(shown)
    notes = Notes(shown)
    return page(
        "rows.html",
        blocks=[_block_table(block, notes) for block in blocks[:MOST_BLOCKS]],
        blocks_left=max(0, len(blocks) - MOST_BLOCKS),
        legend=[*notes.lines(), *Legend().lines(blocks)],
        title=title,
        source=source,
        command=command,
        columns=COLUMNS,
        entries=entries,
        lines=lines,
        problems=len(blocks),
        choices={
            "regime": _values(row.regime for row in shown),
            "planner": _values(line.row.planner for line in lines),
            "problem": _values(entry.problem for entry in entries),
            "status": _values(row.status for row in shown),
        },
        charts=[picture(svg) for svg in _charts(shown)],
        standings=list(_standings(shown)),
        environment=_environment(shown),
    )


def _block_table(block: ProblemBlock, notes: Notes) -> dict[str, Any]:
    """One problem: all columns that a terminal has, but for bars of letters."""
    columns = [column for column in columns_of(block, notes) if column.title]

    def cell(column: Column, contender: Contender) -> tuple[str, str, bool]:
        text = column.cell(contender)
        style = str(text.style) if isinstance(text, Text) else ""
        classes = {"yellow": "soft", "red": "failed", "dim": "pale"}
        return str(text), classes.get(style, style), column.right

    contenders = (*block.contenders, *best_contender(block))
    return {
        "heading": heading(block),
        "columns": [(" ".join(column.title.split()), column.right) for column in columns],
        "lines": [[cell(column, contender) for column in columns] for contender in contenders],
    }


def _lines(entries: Sequence[RowEntry]) -> list[Line]:
    """All entries, and behind the last one of a problem its best, named by the planner that it is of."""
    shown = [entry.row for entry in entries]
    winners = fastest_rows(shown)
    bests = dict(zip(winners, best_rows(shown), strict=True))
    last = {entry.row.problem_id: number for number, entry in enumerate(entries)}
    found: list[Line] = []
    for number, entry in enumerate(entries):
        found.append(Line(entry.id, entry.row, entry.problem, entry.cells))
        problem = entry.row.problem_id
        if last[problem] == number and problem in bests:
            anchor = next(each.id for each in entries if each.row is winners[problem])
            best = bests[problem]
            named = [RowCell(f"{best.planner}: {winners[problem].planned_by}"), *cells(best)[1:]]
            found.append(Line(anchor, best, entry.problem, named, best=True))
    return found


def _values(found: Iterable[str]) -> list[str]:
    return sorted(set(found))


def _charts(rows: Sequence[Row]) -> Iterable[str]:
    for regime in ("sync", "async"):
        some = [row for row in rows if row.regime == regime and row.search_cpu_s and row.simulated_s]
        if some:
            yield quality_svg(some, f"{regime}: quality against search time")


def _standings(rows: Sequence[Row]) -> Iterable[dict[str, Any]]:
    """Across problems, where there are several and several entrants."""
    if len({row.workload_id for row in rows}) < 2:
        return
    for regime in standings(rows).regimes:
        if len(regime.standings) < 2:
            continue
        yield {
            "heading": f"Standings, {standings_heading(regime)}",
            "columns": ("planner", "scheduler", *STANDING_COLUMNS),
            "lines": [
                (
                    each.entrant.planned_by,
                    each.entrant.scheduler,
                    *figures(regime, each),
                )
                for each in regime.standings
            ],
            "words": [*explanations(regime), *regime.notices],
        }


def _environment(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Each figure once; several values of one where rows differ."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, value in row.environment.items():
            found.setdefault(name, {})[value] = None
    return [
        (name, ", ".join(values) if len(values) <= 4 else f"{len(values)} values")
        for name, values in found.items()
    ]
