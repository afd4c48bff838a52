"""What a page tells of one row: its figures, its stages, its pictures, how to repeat it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from markupsafe import Markup

from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.domain.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.html.cells import STYLES, Cell, cells, ladder, problem_of
from pipebench.report.html.template import picture
from pipebench.report.pattern import pattern_of
from pipebench.report.pattern_svg import pattern_svg
from pipebench.report.pictures import plan_gantt, title_of
from pipebench.report.plan_text import FIGURES, OPERATORS, operators, stage_figures
from pipebench.report.stage_graph_svg import stage_graph_svg
from pipebench.report.units import gigabytes, seconds, with_readable_bytes

PICTURES_BYTES = 600_000
"""Of all pictures on a page together; rows beyond say how to draw theirs."""
SMALLEST_PICTURE = 4000
LEFT_OUT = "its timeline is left out to keep the page small: pipebench show draws it, with --picture"
STAGES_BYTES = 1_500_000
"""Of all tables of stages."""


class Plans(Protocol):
    """Finds the plan behind a row, with its problem and schedule; None where there is none."""

    def __call__(self, row: Row) -> PlannedProblem | None:
        """The plan of that row."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row, ready to be laid out."""

    id: str
    row: Row
    problem: str
    style: str
    cells: list[Cell]
    reason: str
    ladder: list[tuple[str, str, str]]
    stages: list[list[str]]
    pictures: list[Markup]
    no_picture: str
    facts: list[tuple[str, str]]
    command: str
    stage_columns: tuple[str, ...] = (*FIGURES, OPERATORS)


class Entries:
    """Entries of a page, pictures while there is room. host services simulate what is drawn."""

    def __init__(self, plans: Plans, services: HostServices) -> None:
        self._plans = plans
        self._services = services
        self._room = PICTURES_BYTES
        self._stages_room = STAGES_BYTES

    def entry(self, number: int, row: Row, command: str) -> Entry:
        """The entry of a row; its anchor is its number."""
        planned = self._plans(row) if row.status == "ok" else None
        stages = self._stages(planned) if planned else []
        pictures, missing = self._pictures(planned) if planned else ([], "")
        return Entry(
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
