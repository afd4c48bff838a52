"""What `pipebench reproduce` writes: chart, table and series of an artefact, and the page of all claims."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipebench.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipebench.bench.store import Store
    from pipebench.domain.artefact import Cell, Figure, Finding, Result
    from pipebench.hooks.descriptors import Artefact
    from pipebench.report.claims.entries import ArtefactClaims
    from pipebench.report.gantt.gantt import Gantt

PAGE_TITLE = "Claims of the papers, measured"


@dataclass(frozen=True, slots=True)
class ArtefactRun:
    """An artefact that was run, to its end or not.

    suite: the cells of this run. whole: all cells of the paper. drawn: its timelines on one scale of time.
    command: how to run it again.
    """

    artefact: "Artefact"
    suite: "Sequence[Cell]"
    whole: "Sequence[Cell]"
    results: "list[Result]"
    found: "list[Finding]"
    figure: "Figure"
    drawn: "list[Gantt]"
    command: str
    interrupted: bool

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "artefact": self.artefact.name,
            "findings": self.found,
            "figure": self.figure,
            "results": self.results,
        }


def write_artefact(out: Path, done: ArtefactRun) -> None:
    """Chart, table and series of one artefact, as files of the folder."""
    from pipebench.formats.files import write_file
    from pipebench.report.chart import svg
    from pipebench.report.gantt.svg import gantt_svg
    from pipebench.report.text.findings import markdown, series_csv

    name = done.artefact.name.replace("/", "-")
    write_file(out / f"{name}.svg", svg(done.figure).encode())
    write_file(out / f"{name}.csv", series_csv(done.figure).encode())
    others = []
    if done.drawn:
        title, file = f"{done.artefact.name}: timelines", f"{name}-timelines.svg"
        write_file(out / file, gantt_svg(done.drawn, title).encode())
        others.append((title, file))
    page = markdown(done.artefact, done.results, done.found, done.figure, f"{name}.svg", others)
    write_file(out / f"{name}.md", page.encode())
    more = "".join(f", {file}" for _, file in others)
    say(f"{out / name}.svg, .md and .csv{more} written", err=True)


def write_pages(
    html: Path | None,
    markdown: Path | None,
    done: "Sequence[ArtefactRun]",
    not_run: "Sequence[tuple[str, str]]",
    command: str,
    store: "Store | None",
) -> None:
    """The page of all claims, in the forms that have a path.

    not_run: name and reason of each artefact without findings. command: how to make the page again.
    """
    from pipebench.formats.files import write_file
    from pipebench.report.claims.entries import ClaimsPage
    from pipebench.report.claims.measurement import measurement
    from pipebench.report.html.claims_page import claims_page
    from pipebench.report.text.claims import claims_markdown

    rows = [result.row for each in done for result in each.results]
    finished_at = {}
    if store is not None:
        finished_at = {row.key: found.finished_at for row in rows if row.key and (found := store.find(row.key))}
    page = ClaimsPage(
        artefacts=[_entry(each, finished_at) for each in done],
        measurement=measurement(rows, finished_at),
        not_run=not_run,
        command=command,
    )
    for path, make in ((html, claims_page), (markdown, claims_markdown)):
        if path is not None:
            write_file(path, make(page, PAGE_TITLE).encode())
            say(f"{path} written", err=True)


def _entry(each: ArtefactRun, finished_at: dict[str, str]) -> "ArtefactClaims":
    from pipebench.report.claims.costs import cost_lines
    from pipebench.report.claims.entries import ArtefactClaims
    from pipebench.report.claims.measurement import measurement

    return ArtefactClaims(
        artefact=each.artefact,
        suite=each.suite,
        whole=each.whole,
        results=each.results,
        findings=each.found,
        figure=each.figure,
        drawn=each.drawn,
        costs=cost_lines(each.suite),
        measurement=measurement([result.row for result in each.results], finished_at),
        command=each.command,
    )
