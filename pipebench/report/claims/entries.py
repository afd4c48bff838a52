"""Artefacts with their findings, grouped by paper, and how many claims there are of each verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from pipebench.documents.units import quantity
from pipebench.domain.artefact import Cell, Figure, Finding, Judgement, Result
from pipebench.hooks.descriptors import Artefact
from pipebench.report.claims.measurement import Measurement
from pipebench.report.gantt.gantt import Gantt

VERDICTS: tuple[Judgement, ...] = ("holds", "depends", "does not hold", "claim only")
assert set(VERDICTS) == set(get_args(Judgement))
MEANINGS: dict[Judgement, str] = {
    "holds": "in every case that was run",
    "depends": "it holds in some of the cases, or the paper leaves open what decides",
    "does not hold": "in no case that was run",
    "claim only": "nothing here can test it",
}


@dataclass(frozen=True, slots=True)
class ArtefactClaims:
    """An artefact that was run.

    suite: the cells of this run. whole: all cells of the paper.
    costs: lines that say under which costs it was measured.
    command: how to run it again.
    """

    artefact: Artefact
    suite: Sequence[Cell]
    whole: Sequence[Cell]
    results: Sequence[Result]
    findings: Sequence[Finding]
    figure: Figure
    drawn: Sequence[Gantt]
    costs: Sequence[str]
    measurement: Measurement
    command: str

    @property
    def paper(self) -> str:
        """The paper's short name: what stands before the slash."""
        return self.artefact.name.partition("/")[0]

    @property
    def is_whole(self) -> bool:
        """Whether all cells of the paper's grid were to be run."""
        return tuple(self.suite) == tuple(self.whole)

    @property
    def extent(self) -> str:
        """Which cells were run, in words."""
        run, all_cells = len(self.suite), len(self.whole)
        extent = "all cells of the paper" if self.is_whole else f"a subset, {run} of {all_cells} cells"
        left = run - len(self.results)
        return f"{extent}; stopped with {left} left" if left else extent

    @property
    def failures(self) -> list[str]:
        """A line for each kind of failure that nobody expected, with its count."""
        lines = Counter(f"{r.cell.planner}: {r.row.status}: {r.row.reason}" for r in self.results if r.failed)
        return [f"{count} x {line}" for line, count in lines.items()]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper's artefacts. title: with its authors. deviations: what differs from it, in all its artefacts."""

    name: str
    title: str
    deviations: Sequence[str]
    artefacts: Sequence[ArtefactClaims]

    @property
    def counts(self) -> Counter[Judgement]:
        """How many claims there are of each verdict."""
        return verdict_counts(self.artefacts)


@dataclass(frozen=True, slots=True)
class ClaimsPage:
    """All that a page of claims says.

    measurement: of all cells together. not_run: name and reason of each artefact without findings.
    command: how to make the page again.
    """

    artefacts: Sequence[ArtefactClaims]
    measurement: Measurement
    not_run: Sequence[tuple[str, str]]
    command: str

    @property
    def papers(self) -> list[Paper]:
        """The papers, in the order in which their artefacts were run."""
        groups: dict[str, list[ArtefactClaims]] = {}
        for each in self.artefacts:
            groups.setdefault(each.paper, []).append(each)
        return [
            Paper(
                name,
                each[0].artefact.paper,
                tuple(dict.fromkeys(line for one in each for line in one.artefact.deviations)),
                each,
            )
            for name, each in groups.items()
        ]

    @property
    def counts(self) -> Counter[Judgement]:
        """How many claims there are of each verdict."""
        return verdict_counts(self.artefacts)

    @property
    def facts(self) -> list[str]:
        """How all was measured, a line for each fact."""
        return [*self.measurement.lines, *([f"run: {self._extents}"] if self.artefacts else [])]

    @property
    def _extents(self) -> str:
        """Of which artefacts all cells were run."""
        whole = [each.artefact.name for each in self.artefacts if each.is_whole]
        part = [each.artefact.name for each in self.artefacts if not each.is_whole]
        if not part:
            return "all of the paper's cells in every artefact"
        if not whole:
            return "a subset of the paper's cells in every artefact"
        if len(whole) < len(part):
            return f"a subset of the paper's cells; all of them in {', '.join(whole)}"
        return f"all of the paper's cells, but a subset in {', '.join(part)}"


def verdict_counts(artefacts: Iterable[ArtefactClaims]) -> Counter[Judgement]:
    """How many claims there are of each verdict."""
    return Counter(finding.judgement for each in artefacts for finding in each.findings)


def counts_text(counts: Counter[Judgement]) -> str:
    """In one line: `3 claims: 2 holds, 1 depends`."""
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{quantity(counts.total(), 'claim')}: {told}" if told else "no claim was judged"


def about_cells(results: Sequence[Result]) -> str:
    """How many cells there are and how they ended: `5 cells: 3 ok, 2 timeout (2 expected)`."""
    ends = Counter(each.row.status for each in results)
    expected = Counter(each.row.status for each in results if each.is_expected)
    told = ", ".join(
        f"{count} {status}" + (f" ({expected[status]} expected)" if expected[status] else "")
        for status, count in ends.items()
    )
    silent = sum(not each.tells for each in results)
    left_out = f"; {silent} not judged: no answer of the planner" if silent else ""
    return f"{len(results)} cells: {told}{left_out}" if results else "no cell was run"
