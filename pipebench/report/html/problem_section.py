"""One problem on a page: its table, why its rows differ, and what its plans are worth in pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup
from rich.text import Text

from pipebench.bench.explanation import Explainer
from pipebench.bench.services import HostServices
from pipebench.check import require_ordered
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.report.chart.memory_bars import DeviceMemory, memory_svg
from pipebench.report.chart.pareto import QualityPoint, pareto_svg
from pipebench.report.html.problem_timelines import Timelines
from pipebench.report.html.template import fragment, picture
from pipebench.report.problem_blocks import Contender, ProblemBlock, names_of, same_plans, share_of_bound
from pipebench.report.problem_names import ProblemNames
from pipebench.report.text.comparisons.blocks import Column, best_contender, columns_of
from pipebench.report.text.comparisons.comparison import heading, remarks
from pipebench.report.text.comparisons.notes import Notes
from pipebench.report.text.comparisons.why import MOST_EXPLAINED, PlanOf, why_lines

CLASSES = {"yellow": "soft", "red": "failed", "dim": "pale"}
"""Styles of the terminal, as classes of the page."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """part: the cell as a part of 1, drawn as a bar; None where it is none."""

    text: str
    style: str
    right: bool
    part: float | None


@dataclass(frozen=True, slots=True)
class ProblemSection:
    """A section, ready to be laid out. left_out: what it does not draw, in words."""

    heading: str
    columns: Sequence[tuple[str, bool]]
    lines: Sequence[Sequence[TableCell]]
    remarks: Sequence[str]
    charts: Sequence[Markup] = ()
    timelines: Markup | None = None
    left_out: Sequence[str] = ()

    def markup(self) -> Markup:
        """The section as HTML."""
        return Markup(fragment("problem.html", section=self))


def table_section(
    block: ProblemBlock, notes: Notes, names: ProblemNames, why: Sequence[str] = ()
) -> ProblemSection:
    """A section without pictures. names: of the problems of the page. why: lines that say why rows differ."""
    columns = [column for column in columns_of(block, notes) if column.title]
    contenders = (*block.contenders, *best_contender(block))
    return ProblemSection(
        heading=heading(block, names),
        columns=[(" ".join(column.title.split()), column.right) for column in columns],
        lines=[[_cell(column, contender) for column in columns] for contender in contenders],
        remarks=[line.strip() for line in remarks(block, why, names)],
    )


class ProblemSections:
    """Sections of one page in order. services: simulate what is drawn.

    The first `explained` of them say why their rows differ and have pictures, timelines while there is room.
    A contender has one colour on the whole page.
    """

    def __init__(
        self,
        plan_of: PlanOf,
        services: HostServices,
        explainer: Explainer,
        notes: Notes,
        names: ProblemNames,
        explained: int = MOST_EXPLAINED,
    ) -> None:
        self._explained = explained
        self._plan_of = plan_of
        self._explainer = explainer
        self._notes = notes
        self._names = names
        self._timelines = Timelines(services)
        self._made = 0
        self._numbers: dict[str, int] = {}
        self._ordered: dict[tuple[str | None, ...], PlannedProblem | None] = {}

    def section(self, block: ProblemBlock) -> ProblemSection:
        """The section of the next problem."""
        self._ordered.clear()
        explained = self._made < self._explained
        self._made += 1
        if not explained:
            return table_section(block, self._notes, self._names)
        why = why_lines(block, self._explainer, self._ordered_plan_of)
        table = table_section(block, self._notes, self._names, why)
        for contender in block.contenders:
            self._numbers.setdefault(contender.name, len(self._numbers))
        timelines, left_out = self._timelines.picture(block, self._ordered_plan_of)
        lacking = [*_lacking(block), *([left_out] if left_out else [])]
        return replace(table, charts=list(self._charts(block)), timelines=timelines, left_out=lacking)

    def _ordered_plan_of(self, row: Row) -> PlannedProblem | None:
        """The plan behind a row of this problem, where it is known with a schedule that it can run."""
        key = row.problem_id, row.plan_id, row.schedule_id, row.planner
        if key not in self._ordered:
            planned = self._plan_of(row)
            self._ordered[key] = planned if planned is not None and _is_ordered(planned) else None
        return self._ordered[key]

    def _charts(self, block: ProblemBlock) -> Iterator[Markup]:
        """Quality and memory of each regime; what the figures do not allow is left out."""
        ranked = {mode: block.ranked(mode) for mode in block.regimes}
        for mode, rows in ranked.items():
            points = [
                QualityPoint(each.marked_name, self._numbers[each.name], share, row.search_cpu_s)
                for each, row in rows
                if (share := share_of_bound(row)) is not None and row.search_cpu_s and not row.parallel
            ]
            if points:
                yield picture(pareto_svg(points, f"{mode}: quality by search time"))
        for mode, rows in ranked.items():
            plans = [
                DeviceMemory(names_of(same), self._numbers[same[0][0].name], same[0][1].peak_memory_bytes)
                for same in same_plans(rows)
                if same[0][1].peak_memory_bytes
            ]
            limits = {row.device_memory_bytes for _, row in rows}
            limit_bytes = limits.pop() if len(limits) == 1 else None
            if plans:
                title = f"{mode}: peak memory by device"
                yield picture(memory_svg(plans, max(1, block.row.devices), limit_bytes, title))


def _lacking(block: ProblemBlock) -> Iterator[str]:
    rows = ((each.marked_name, row) for each in block.contenders for row in each.rows.values())
    names = dict.fromkeys(name for name, row in rows if row.parallel and row.status == "ok")
    if names:
        yield f"Not in the charts of search time, as they ran beside other trials: {', '.join(names)}."


def _is_ordered(planned: PlannedProblem) -> bool:
    try:
        if planned.schedule is not None:
            require_ordered(planned.problem, planned.plan, planned.schedule)
    except PipebenchError:
        return False  # the row's details say what is wrong
    return planned.schedule is not None


def _cell(column: Column, contender: Contender) -> TableCell:
    text = column.cell(contender)
    style = str(text.style) if isinstance(text, Text) else ""
    part = column.part(contender) if column.part is not None else None
    return TableCell(str(text), CLASSES.get(style, style), column.right, part)
