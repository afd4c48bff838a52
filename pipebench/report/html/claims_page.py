"""The page of claims as HTML: verdicts counted at its head, then each artefact, its chart above its claims."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from pipebench.report.chart import svg
from pipebench.report.claims.entries import (
    MEANINGS,
    VERDICTS,
    ArtefactClaims,
    ClaimsPage,
    Paper,
    about_cells,
    counts_text,
)
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.html.template import page, picture
from pipebench.report.text.findings import claim_text


@dataclass(frozen=True, slots=True)
class _ArtefactEntry:
    id: str
    run: ArtefactClaims
    cells: str
    charts: tuple[Markup, ...]


@dataclass(frozen=True, slots=True)
class _PaperEntry:
    id: str
    paper: Paper
    counts: str
    artefacts: tuple[_ArtefactEntry, ...]


def claims_page(shown: ClaimsPage, title: str) -> str:
    """The whole page."""
    return page(
        "claims.html",
        title=title,
        counts=counts_text(shown.counts),
        verdicts=VERDICTS,
        meanings=MEANINGS,
        totals=shown.counts,
        shown=shown,
        papers=[_paper(paper) for paper in shown.papers],
        claim_text=claim_text,
    )


def _paper(paper: Paper) -> _PaperEntry:
    entries = tuple(
        _ArtefactEntry(_id(each.artefact.name), each, about_cells(each.results), tuple(_charts(each)))
        for each in paper.artefacts
    )
    return _PaperEntry(_id(paper.name), paper, counts_text(paper.counts), entries)


def _id(name: str) -> str:
    return "claims-" + name.replace("/", "-")


def _charts(each: ArtefactClaims) -> Iterator[Markup]:
    if each.figure.panels:
        yield picture(svg(each.figure))
    if each.drawn:
        yield picture(gantt_svg(each.drawn, f"{each.artefact.name}: timelines"))
