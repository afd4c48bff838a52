"""The page of claims: what papers say beside what was measured, one line a claim, a chart for each artefact."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipebench.domain.artefact import Figure, Finding, Result, Table
from pipebench.hooks.descriptors import Artefact
from pipebench.report.chart import svg
from pipebench.report.gantt.gantt import Gantt
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.html.template import page, picture
from pipebench.report.text.findings import about_cells


@dataclass(frozen=True, slots=True)
class Claims:
    """An artefact that was run. command: how to run it again."""

    artefact: Artefact
    results: Sequence[Result]
    findings: Sequence[Finding]
    figure: Figure
    drawn: Sequence[Gantt]
    command: str


@dataclass(frozen=True, slots=True)
class _ClaimEntry:
    id: str
    name: str
    summary: str
    reference: str
    cells: str
    findings: Sequence[Finding]
    charts: Sequence[Markup]
    tables: Sequence[Table]
    notes: Sequence[str]
    command: str


def claims_page(done: Sequence[Claims], title: str) -> str:
    """The whole page; verdicts are counted at its head."""
    verdicts = Counter(finding.judgement for each in done for finding in each.findings)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return page(
        "claims.html",
        title=title,
        counts=f"{sum(verdicts.values())} claims: {told}" if verdicts else "no claim was judged",
        artefacts=[_entry(number, each) for number, each in enumerate(done, 1)],
    )


def _entry(number: int, each: Claims) -> _ClaimEntry:
    return _ClaimEntry(
        id=f"artefact-{number}",
        name=each.artefact.name,
        summary=each.artefact.summary,
        reference=each.artefact.reference,
        cells=about_cells(each.results),
        findings=each.findings,
        charts=[picture(drawn) for drawn in _charts(each)],
        tables=each.figure.tables,
        notes=(*each.artefact.deviations, *each.figure.notes),
        command=each.command,
    )


def _charts(each: Claims) -> Iterator[str]:
    if each.figure.panels:
        yield svg(each.figure)
    if each.drawn:
        yield gantt_svg(each.drawn, f"{each.artefact.name}: timelines")
