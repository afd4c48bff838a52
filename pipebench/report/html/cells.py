"""The cells of a row in a table: text as people read it, and the value that it sorts by."""

from dataclasses import dataclass

from pipebench.domain.row import Row
from pipebench.report.rounds import search_time
from pipebench.report.table import subject
from pipebench.report.units import gigabytes, percent, rate, seconds

COLUMNS = (
    ("planner", False),
    ("scheduler", False),
    ("regime", False),
    ("problem", False),
    ("devices", True),
    ("claimed", True),
    ("samples/s", True),
    ("gap", True),
    ("fit", False),
    ("memory", True),
    ("bubble", True),
    ("search", True),
    ("status", False),
)
"""Name, and whether it stands to the right."""
STYLES = {"ok": "ok", "infeasible": "soft", "unsupported": "soft", "skipped": "pale"}


@dataclass(frozen=True, slots=True)
class Cell:
    """value: what the column sorts by, None: the text."""

    text: str
    value: float | str | None = None
    right: bool = False
    style: str = ""


def cells(row: Row) -> list[Cell]:
    """One for each of COLUMNS."""
    claimed = row.mini_batch / row.claimed_s if row.claimed_s else None
    return [
        Cell(f"{row.planner} (adapted)" if row.adapted else row.planner),
        Cell(row.scheduler),
        Cell(row.regime),
        Cell(problem_of(row)),
        Cell(str(row.devices), row.devices, right=True),
        _figure(rate(claimed), claimed),
        _figure(rate(row.throughput), row.throughput),
        _figure(percent(row.gap), row.gap),
        Cell("no" if row.fit == "does not fit" else row.fit or "-"),
        _figure(gigabytes(row.memory_bytes), row.memory_bytes),
        _figure(percent(row.bubble), row.bubble),
        _figure(search_time(row), row.search_cpu_s),
        Cell(row.status, style=STYLES.get(row.status, "failed")),
    ]


def problem_of(row: Row) -> str:
    """What is planned, on what."""
    return f"{subject(row)} on {row.devices} x {row.cluster}, mini-batch {row.mini_batch}"


def ladder(row: Row) -> list[tuple[str, str, str]]:
    """The bound and every rung of the claim ladder that is known: name, time, share of the longest in percent."""
    rungs = (
        ("bound", row.bound_s),
        ("claimed", row.claimed_s),
        ("estimated", row.estimated_s),
        ("simulated", row.simulated_s),
        ("replayed", row.replayed_s),
        ("measured", row.measured_s),
    )
    known = [(name, value) for name, value in rungs if value is not None]
    longest = max((value for _, value in known), default=0.0)
    return [(name, seconds(value), f"{100 * value / longest:.1f}") for name, value in known if longest > 0]


def _figure(text: str, value: float | None) -> Cell:
    return Cell(text, "" if value is None else value, right=True)
