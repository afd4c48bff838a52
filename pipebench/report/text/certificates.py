"""Certificates as people read them: a table of those that were written, and what one proves in a sentence."""

from collections.abc import Sequence
from fractions import Fraction

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.certification import NAME_LETTERS, Outcome, Verification
from pipebench.costs.quantise import NS_PER_S
from pipebench.documents.units import readable_bytes, readable_seconds
from pipebench.report.problem_names import short_subject
from pipebench.report.text.tables import print_table


def print_outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """A line for each certificate that was written now; below, why some were not."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("row", no_wrap=True)
    for column in ("planner", "problem"):
        table.add_column(column, overflow="fold")
    table.add_column("regime", no_wrap=True)
    for column in ("time", "bound", "gap", "size", "took"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in outcomes:
        if each.file is None or each.stood:
            continue
        table.add_row(
            each.subject.key[:NAME_LETTERS],
            each.subject.planner,
            short_subject(each.subject.model),
            each.subject.regime,
            _time(each.time_ns),
            _time(each.bound_ns),
            gap_text(each.time_ns, each.bound_ns),
            readable_bytes(each.size_bytes),
            f"{each.seconds:.1f} s",
        )
    if table.row_count:
        print_table(console, table)
    for each in outcomes:
        if each.file is None:
            what = f"{each.subject.key[:NAME_LETTERS]} ({each.subject.planner}): not certified: {each.reason}"
            console.print(Text(what), soft_wrap=True)


def gap_text(time_ns: int, bound_ns: int) -> str:
    """By how much the plan takes longer than the bound, of the bound."""
    return f"{float(Fraction(100 * (time_ns - bound_ns), bound_ns)):.1f} %" if bound_ns else "-"


def sentence(found: Verification) -> str:
    """What a certificate proves, or why it is refused."""
    proven = found.proven
    if proven is None:
        return f"{found.path}: refused: {found.reason}"
    where = ", in part where memory is to stay free" if proven.tight else ""
    plans = "no plan of this problem" + ("" if proven.over == "all plans" else " that runs operators whole")
    within = f": within {gap_text(proven.time_ns, proven.bound_ns)}" if proven.bound_ns else ""
    of = f"{proven.about['planner']} on {short_subject(proven.about['model'])}, {proven.regime}"
    return (
        f"{found.path}: {of}: the plan takes {_time(proven.time_ns)} and fits{where}; "
        f"{plans} takes less than {_time(proven.bound_ns)}{within}"
    )


def _time(ns: int) -> str:
    return readable_seconds(ns / NS_PER_S)
