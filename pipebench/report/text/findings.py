"""Claims of a paper beside what was measured: for the terminal, as Markdown, and the series as CSV."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table as Printed
from rich.text import Text

from pipebench.documents.printable import spreadsheet_text
from pipebench.domain.artefact import Claim, Figure, Finding, Result, Table
from pipebench.hooks.descriptors import Artefact
from pipebench.report.claims.entries import about_cells
from pipebench.report.units import full_width

STYLES = {"holds": "green", "does not hold": "red", "depends": "yellow", "claim only": "dim"}


def print_findings(
    console: Console, artefact: Artefact, results: Sequence[Result], found: Sequence[Finding]
) -> None:
    """The head, how the cells ended, then each claim with its verdict, what was measured and why."""
    console.print(Text(f"{artefact.name}: {artefact.summary}", style="bold"), soft_wrap=True)
    console.print(Text(artefact.reference), soft_wrap=True)
    console.print(Text(about_cells(results)), soft_wrap=True)
    for finding in found:
        claim = finding.claim
        console.print()
        console.print(
            Text.assemble((f"{finding.judgement}: ", STYLES[finding.judgement]), (claim.statement, "bold")),
            soft_wrap=True,
        )
        for name, words in (("paper", claim_text(claim)), ("why", finding.reason)):
            console.print(Text(f"  {name:<9}{words}"), soft_wrap=True)
        for position, words in enumerate(finding.measured or ("nothing",)):
            console.print(Text(f"  {'measured' if position == 0 else '':<9}{words}"), soft_wrap=True)


def markdown(
    artefact: Artefact,
    results: Sequence[Result],
    found: Sequence[Finding],
    figure: Figure,
    chart: str,
    others: Sequence[tuple[str, str]] = (),
) -> str:
    """A page: the chart by its file name, tables, the claims, what to know of the figures.

    others: titles and file names of further drawings.
    """
    rows = [(f.claim.statement, claim_text(f.claim), "; ".join(f.measured), f.judgement, f.reason) for f in found]
    table = [_row(("claim", "the paper", "measured", "verdict", "why")), _row(("---",) * 5), *map(_row, rows)]
    notes = [f"- {note}" for note in (*artefact.deviations, *figure.notes)]
    parts = [
        f"# {artefact.name}",
        f"{artefact.summary}. {artefact.reference}.",
        about_cells(results),
        *(f"![{title}]({file})" for title, file in ((figure.title, chart), *others)),
        *(f"{each.title}\n\n" + "\n".join(_table(each)) for each in figure.tables),
        "\n".join(table),
        "## What differs from the paper, and what was lost",
        "\n".join(notes) or "- nothing",
    ]
    return "\n\n".join(parts) + "\n"


def series_csv(figure: Figure) -> str:
    """Every point of the figure; y is empty where there is no schedule."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("panel", "curve", "kind", "x", "y"))
    for panel in figure.panels:
        for curve in panel.curves:
            places: Iterable[tuple[float, float | str]] = [*curve.points, *((x, "") for x in curve.infeasible)]
            for x, y in sorted(places, key=lambda place: place[0]):
                value = y if isinstance(y, str) else f"{y:.9g}"
                words = map(spreadsheet_text, (panel.title, curve.label, curve.kind))
                writer.writerow((*words, f"{x:g}", value))
    return out.getvalue()


def print_tables(console: Console, figure: Figure) -> None:
    """The figure's tables, numbers to the right; nothing is cut or wrapped."""
    for each in figure.tables:
        console.print()
        console.print(Text(each.title, style="bold"), soft_wrap=True)
        made = Printed(box=None, pad_edge=False, header_style="bold")
        for position, column in enumerate(each.columns):
            made.add_column(Text(column), justify="right" if position else "left", no_wrap=True)
        for row in each.rows:
            made.add_row(*map(Text, row))
        wide = Console(file=StringIO(), width=full_width(console, made), color_system=None)
        wide.print(made)
        for line in wide.file.getvalue().splitlines():  # type: ignore[attr-defined]
            console.print(Text(line.rstrip()), soft_wrap=True)


def claim_text(claim: Claim) -> str:
    """The paper's words and where they stand; the place alone where the claim has no quote."""
    return f"“{claim.quote}” ({claim.where})" if claim.quote else claim.where


def _table(table: Table) -> list[str]:
    return [_row(table.columns), _row(("---",) * len(table.columns)), *map(_row, table.rows)]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
