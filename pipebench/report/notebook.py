"""What the API returns, and how a notebook shows it."""

from dataclasses import fields
from importlib import import_module
from typing import Any

from pipebench.bench.cage.installed import installed_host
from pipebench.bench.redaction import Redaction
from pipebench.bench.services import HostServices
from pipebench.bench.standings import best_rows
from pipebench.bench.trials.trial import Outcome
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.html.problem_section import table_section
from pipebench.report.html.template import fragment
from pipebench.report.pattern import pattern_of, pattern_svg
from pipebench.report.pictures import plan_gantt, title_of
from pipebench.report.problem_blocks import problem_blocks
from pipebench.report.problem_names import ProblemNames
from pipebench.report.text.comparisons.blocks import Legend
from pipebench.report.text.comparisons.notes import Notes


class Comparison(list[Row]):
    """The rows of a comparison; a notebook shows them as one table for each problem."""

    @property
    def best(self) -> "Comparison":
        """For each problem that several planners met the fastest of these rows, under the name `best`."""
        return Comparison(best_rows(self))

    def html(self, with_output: bool = False) -> str:
        """The table of each problem, as `compare` prints it. with_output: with absolute paths and whole command
        lines; notebooks are passed on.
        """
        redaction = Redaction(self)
        rows = list(self) if with_output else [redaction.row(row) for row in self]
        blocks, notes, names = problem_blocks(rows), Notes(rows), ProblemNames(rows)
        sections = [table_section(block, notes, names).markup() for block in blocks]
        return fragment("notebook.html", sections=sections, legend=[*notes.lines(), *Legend().lines(blocks)])

    def to_frame(self) -> Any:
        """A pandas DataFrame: a line for each row, a column for each field of `Row`. Maps and tuples
        stay as they are.

        Raises PipebenchError where pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise PipebenchError("a frame needs pandas, which is not installed", "pip install pandas") from None
        names = Row.__struct_fields__
        return pandas.DataFrame([{name: getattr(row, name) for name in names} for row in self], columns=names)

    def _repr_html_(self) -> str:
        return self.html()


class NotebookOutcome(Outcome):
    """The outcome of one search; a notebook shows its row and its timeline."""

    __slots__ = ()

    @classmethod
    def of(cls, outcome: Outcome) -> "NotebookOutcome":
        """The same under this name."""
        return cls(**{field.name: getattr(outcome, field.name) for field in fields(Outcome)})

    def _repr_html_(self) -> str:
        row = Comparison([self.row]).html()
        if self.plan is None or self.schedule is None or self.row.status != "ok":
            return row
        planned = PlannedProblem(
            problem=self.problem,
            plan=self.plan,
            schedule=self.schedule,
            scheduler=self.row.scheduler,
            planner=Redaction([self.row]).label(self.row.planner),
        )
        title = title_of(planned)
        if isinstance(self.schedule, PeriodicSchedule):
            return row + pattern_svg(pattern_of(self.problem, self.plan, self.schedule), title)
        return row + gantt_svg([plan_gantt(planned, HostServices(installed_host()))], title)
