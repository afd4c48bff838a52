"""The page of a comparison, a suite or a store, and what it tells of each row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pipebench.bench.explanation import Explainer
from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.bench.standings import RegimeStandings, standings
from pipebench.bench.standings.profiles import FEWEST_PROBLEMS, performance_curves
from pipebench.check import require_ordered
from pipebench.documents.decoding import collector_paused
from pipebench.documents.document import PlannedProblem
from pipebench.documents.units import quantity, three_digits
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.manager import Host
from pipebench.report.chart.performance_profile import performance_profile_svg
from pipebench.report.chart.stage_graph import stage_graph_svg
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.html.facets import facets, filter_form, page_data
from pipebench.report.html.heat_map import heat_section
from pipebench.report.html.problem_grid import problem_grid
from pipebench.report.html.problem_section import ProblemSections
from pipebench.report.html.row_table import row_table
from pipebench.report.html.template import page, picture
from pipebench.report.pattern import pattern_of, pattern_svg
from pipebench.report.pictures import plan_gantt, title_of
from pipebench.report.problem_blocks import class_words, problem_blocks, rows_by_problem
from pipebench.report.problem_names import ProblemNames
from pipebench.report.rows import STYLES, ladder
from pipebench.report.text.comparisons.blocks import Legend
from pipebench.report.text.comparisons.comparison import merged_rounds
from pipebench.report.text.comparisons.notes import Notes
from pipebench.report.text.comparisons.standings import COLUMNS as STANDING_COLUMNS
from pipebench.report.text.comparisons.standings import explanations, figures
from pipebench.report.text.comparisons.standings import heading as standings_heading
from pipebench.report.text.comparisons.why import MOST_EXPLAINED, PlanOf
from pipebench.report.text.plans import FIGURES, OPERATORS, operators, peak_words, stage_figures
from pipebench.report.units import seconds, with_readable_bytes

PICTURES_BYTES = 600_000
"""Of the pictures of all single rows together; rows beyond say how to draw theirs."""
SMALLEST_PICTURE = 4000
SHOWN_PROBLEMS, SHOWN_LINES, SHOWN_ENTRIES = 20, 100, 40
"""Problems, lines of the table of all rows, and rows with their details that a page shows at once."""
MOST_PAGE_ROWS, LARGE_PAGE_ROWS = 10_000, 1_000
"""Rows of a page that has all of them; of more rows, those of the first problems up to so many."""
LARGE_PAGE_EXPLAINED = 4
"""Problems with pictures, of a page that leaves problems out."""
LEFT_OUT = "its timeline is left out to keep the page small: pipebench show draws it, with --picture"
STAGES_BYTES = 1_500_000
"""Of all tables of stages."""


@dataclass(frozen=True, slots=True)
class RowEntry:
    """One row, ready to be laid out. problem: its name, empty where the page is about one problem."""

    id: str
    row: Row
    problem: str
    style: str
    reason: str
    ladder: list[tuple[str, str, str]]
    stages: list[list[str]]
    pictures: list[Markup]
    no_picture: str
    facts: list[tuple[str, str]]
    command: str
    stage_columns: tuple[str, ...] = (*FIGURES, OPERATORS)


class Entries:
    """Entries of a page, pictures while there is room. host services simulate what is drawn.

    drawn: whether plans are read at all; of a page that leaves problems out they are not.
    """

    def __init__(self, plans: PlanOf, services: HostServices, drawn: bool = True) -> None:
        self._plans = plans
        self._services = services
        self._drawn = drawn
        self._room = PICTURES_BYTES
        self._stages_room = STAGES_BYTES

    def entry(self, number: int, row: Row, command: str, problem: str) -> RowEntry:
        """The entry of a row; its anchor is its number."""
        planned = self._plans(row) if row.status == "ok" and self._drawn else None
        missing = _trouble(planned) if planned else "" if self._drawn or not row.plan_id else LEFT_OUT
        stages = self._stages(planned) if planned and not missing else []
        pictures, missing = self._pictures(planned) if planned and not missing else ([], missing)
        return RowEntry(
            id=f"row-{number}",
            row=row,
            problem=problem,
            style=STYLES.get(row.status, "failed"),
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
        yield "bound over every plan", f"{seconds(row.bound_s)} ({row.bound_kind})"
    if row.class_bound_s is not None:
        yield "bound over its class", class_words(row).removeprefix("bound ")
    if row.claimed_native is not None:
        yield "claimed, in its own unit", f"{three_digits(row.claimed_native)} {row.claimed_unit}"
    if row.stages is not None:
        sizes = ",".join(map(str, sorted(set(row.micro_batch))))
        yield "plan", f"{row.stages} stages, depth {row.depth}, micro-batch {sizes}"
    if row.peak_memory_bytes:
        yield "peak memory", peak_words(row.peak_memory_bytes)
    if row.search_cpu_s is not None:
        cold = f", {seconds(row.search_cold_s)} the first time" if row.search_cold_s is not None else ""
        yield "search", f"{seconds(row.search_cpu_s)} CPU, {seconds(row.search_wall_s)} wall{cold}"
    if row.counters:
        yield "work", ", ".join(f"{name} {amount:,}" for name, amount in row.counters.items())


def rows_page(
    host: Host,
    rows: Iterable[Row],
    plans: PlanOf,
    repeat: Callable[[Row], str],
    title: str,
    *,
    source: str = "",
    command: str = "",
    explainer: Explainer | None = None,
) -> str:
    """The whole page. repeat: the command that runs a row again.

    explainer: what it knows already is not simulated anew; without one there is a new one.
    """
    everything = merged_rounds(rows)
    shown = _of_first_problems(everything)
    services = HostServices(host)
    large = len(shown) < len(everything)
    made = Entries(plans, services, drawn=not large)
    explained = LARGE_PAGE_EXPLAINED if large else MOST_EXPLAINED
    blocks, names = problem_blocks(shown), ProblemNames(shown)
    problems = len({row.workload_id for row in everything})
    entries = [
        made.entry(number, row, repeat(row), names.problem(row) if problems > 1 else "")
        for number, row in enumerate(shown, 1)
    ]
    notes = Notes(shown)
    grid = problem_grid(shown)
    table = row_table([(entry.id, entry.row) for entry in entries], grid, names)
    found = facets(grid, [line.filtered_by for line in table.lines])
    with collector_paused():
        standing = standings(everything, in_pairs=False).regimes
    sections = ProblemSections(plans, services, explainer or Explainer(host), notes, names, explained)
    return page(
        "rows.html",
        filters=filter_form(found),
        heat_map=heat_section(grid),
        profiles=[picture(svg) for svg in _profiles(standing)],
        data=page_data(found, grid, {"problems": SHOWN_PROBLEMS, "lines": SHOWN_LINES, "entries": SHOWN_ENTRIES}),
        shown_problems=SHOWN_PROBLEMS,
        shown_lines=SHOWN_LINES,
        shown_entries=SHOWN_ENTRIES,
        line_of={line.anchor: number for number, line in enumerate(table.lines) if not line.best},
        sections=[sections.section(block).markup() for block in blocks],
        explained=explained,
        legend=[*notes.lines(), *Legend().lines(blocks)],
        title=title,
        source=source,
        command=command,
        table=table,
        entries=entries,
        problems=problems,
        counted=f"{quantity(len(everything), 'row')}, {quantity(problems, 'problem')}",
        left_out=problems - len(blocks),
        standings=list(_standings(standing, problems)),
        environment=_environment(everything),
    )


def _of_first_problems(rows: Sequence[Row]) -> Sequence[Row]:
    """All rows; of more than a page holds those of the first problems, in the order of the rows."""
    if len(rows) <= MOST_PAGE_ROWS:
        return rows
    kept: set[str] = set()
    room = LARGE_PAGE_ROWS
    for name, same in rows_by_problem(rows).items():
        if kept and len(same) > room:
            break
        kept.add(name)
        room -= len(same)
    return [row for row in rows if row.workload_id in kept]


def _profiles(regimes: Iterable[RegimeStandings]) -> Iterator[str]:
    """A performance profile of each regime with enough problems and somebody to compare with."""
    for regime in regimes:
        if regime.problems >= FEWEST_PROBLEMS and len(regime.standings) > 1:
            title = f"{regime.regime}: performance profiles over {quantity(regime.problems, 'problem')}"
            yield performance_profile_svg(performance_curves(regime), regime.problems, title)


def _standings(regimes: Iterable[RegimeStandings], problems: int) -> Iterator[dict[str, Any]]:
    """Across problems, where there are several and several entrants."""
    for regime in regimes if problems > 1 else ():
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
            "words": [*explanations(regime), *_no_profile(regime), *regime.notices],
        }


def _no_profile(regime: RegimeStandings) -> list[str]:
    if regime.problems >= FEWEST_PROBLEMS:
        return []
    return [f"no performance profile: it takes {FEWEST_PROBLEMS} problems, here are {regime.problems}"]


def _environment(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Each figure that is known once; several values of one where rows differ."""
    found: dict[str, dict[str, None]] = {}
    different = {id(row.environment): row.environment for row in rows}  # most rows of a store share theirs
    for environment in different.values():
        for name, value in environment.items():
            if value:
                found.setdefault(name, {})[value] = None
    return [
        (name, ", ".join(values) if len(values) <= 4 else f"{len(values)} values")
        for name, values in found.items()
    ]
