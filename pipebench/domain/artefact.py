"""A paper's figure or table, run again: what to run, what the paper claims, what came of it."""

from typing import Literal

from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import FAILED, Row, Status
from pipebench.domain.value import Value, require_count
from pipebench.domain.workload import WorkloadSpec

Judgement = Literal["holds", "does not hold", "depends", "claim only"]
"""`depends`: on what the paper leaves open (the reason says on what). `claim only`: nothing here can test it."""


TELLING: tuple[Status, ...] = ("ok", "infeasible", "unsupported")
"""How a trial ends that says what its planner does. Of other ends it must be expected that they do."""


class Cell(WorkloadSpec, frozen=True, kw_only=True):
    """One trial: a workload, and a planner as on the command line.

    at: its place in the figure, by the names that the artefact uses (network, devices, memory, …).
    input_bytes: the profile is scaled until its inputs have so many bytes a sample; None: unchanged.
    chain: the operators between single-tensor cuts are joined to layers, each of which keeps its input (MadPipe,
    section 4.1), at the pinned micro-batch.
    repeat: warm searches to time; 0 where only the plan matters.
    expected_s: rough duration of the trial.
    expected_failures: statuses that a claim is about or that the paper reports here. A planner that runs out of
    time or of memory as the paper says is a result and no failed run.
    timeline: label of the timeline of its schedule; empty: none is drawn.
    """

    at: dict[str, str | float]
    planner: str
    input_bytes: float | None = None
    chain: bool = False
    regime: RegimeMode | None = None
    scheduler: str | None = None
    repeat: int = 0
    timeout_s: float = 300.0
    expected_s: float = 1.0
    expected_failures: tuple[Status, ...] = ()
    timeline: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("devices", self.devices)


class Result(Value, frozen=True, kw_only=True):
    """A cell and the row that came of it."""

    cell: Cell
    row: Row

    @property
    def is_expected(self) -> bool:
        """Whether the row failed as the cell expects."""
        return self.row.status in self.cell.expected_failures

    @property
    def failed(self) -> bool:
        """Whether the row may end otherwise the next time, and nobody expected its end."""
        return self.row.status in FAILED and not self.is_expected

    @property
    def tells(self) -> bool:
        """Whether the row says something of a claim. A crash, a wrong plan and a trial that was not run do not."""
        return self.is_expected or self.row.status in TELLING


class Claim(Value, frozen=True, kw_only=True):
    """What a paper says.

    statement: restated so that it can be measured. quote: its own words, empty where the statement says the
    same. where: in the paper.
    """

    name: str
    statement: str
    quote: str = ""
    where: str


class Finding(Value, frozen=True, kw_only=True):
    """A claim beside what was measured. measured: a line for each case; value: the figure that decides, if any."""

    claim: Claim
    measured: tuple[str, ...] = ()
    value: float | None = None
    judgement: Judgement
    reason: str


class Curve(Value, frozen=True, kw_only=True):
    """One line of a chart. kind: an estimate is drawn dashed, a schedule solid.

    points: (x, y) where there is a value. infeasible: x of the cells where there is none. colour: curves of one
    number share a colour, the estimate and the schedule of one planner.
    """

    label: str
    kind: Literal["estimate", "schedule"] = "schedule"
    colour: int = 0
    points: tuple[tuple[float, float], ...] = ()
    infeasible: tuple[float, ...] = ()


class Panel(Value, frozen=True, kw_only=True):
    """One chart of a figure; axes with their units."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...] = ()


class Table(Value, frozen=True, kw_only=True):
    """Rows of text under columns, each as long as the columns; the first column names what a row is about."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()


class Figure(Value, frozen=True, kw_only=True):
    """Panels side by side, tables, and what a reader has to know of them."""

    title: str
    panels: tuple[Panel, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
