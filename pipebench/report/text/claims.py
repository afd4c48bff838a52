"""The page of claims as Markdown. The same rows make the same bytes."""

import re
from collections.abc import Iterable, Iterator

from pipebench.domain.artefact import Finding
from pipebench.report.claims.entries import (
    MEANINGS,
    VERDICTS,
    ArtefactClaims,
    ClaimsPage,
    Paper,
    about_cells,
    counts_text,
)
from pipebench.report.text.findings import claim_text

SPECIAL = re.compile(r"([\\`*_<>\[\]|])")


def claims_markdown(page: ClaimsPage, title: str) -> str:
    """Counts and facts, then each paper: a table of its claims, then each artefact with all that was measured."""
    parts = [
        f"# {title}",
        f"{counts_text(page.counts)}.",
        f"This page is made by `{page.command}`. What is in the folder is not run again.",
        *_overview(page),
    ]
    if page.facts:
        parts += ["## How it was measured", _list(page.facts)]
    if page.not_run:
        parts += ["## What could not be run", _list(f"{name}: {reason}" for name, reason in page.not_run)]
    for paper in page.papers:
        parts += _paper(paper)
    return "\n\n".join(parts) + "\n"


def _overview(page: ClaimsPage) -> Iterator[str]:
    if not page.artefacts:
        return
    rows = [
        (f"[{_plain(paper.name)}](#{_anchor(paper.name)})", *(str(paper.counts[verdict]) for verdict in VERDICTS))
        for paper in page.papers
    ]
    rows.append(("all", *(str(page.counts[verdict]) for verdict in VERDICTS)))
    yield _table(("paper", *VERDICTS), rows, "---:")
    yield _list(f"{verdict}: {MEANINGS[verdict]}." for verdict in VERDICTS)


def _paper(paper: Paper) -> Iterator[str]:
    yield f"## {_plain(paper.name)}"
    if paper.title:
        yield f"{_plain(paper.title)}. {counts_text(paper.counts)}."
    rows = [
        (
            f"[{_plain(each.artefact.name)}](#{_anchor(each.artefact.name)})",
            _plain(finding.claim.statement),
            finding.judgement,
        )
        for each in paper.artefacts
        for finding in each.findings
    ]
    yield _table(("artefact", "claim", "verdict"), rows, "---")
    if paper.deviations:
        yield "What differs from the paper:"
        yield _list(paper.deviations)
    for each in paper.artefacts:
        yield from _artefact(each)


def _artefact(each: ArtefactClaims) -> Iterator[str]:
    yield f"### {_plain(each.artefact.name)}"
    yield _plain(f"{each.artefact.summary}. {each.artefact.reference}.")
    facts = [f"repeat it: `{each.command}`", f"run: {each.extent}"]
    facts.append(_plain(f"ended: {about_cells(each.results)}"))
    facts.append(_plain(f"time: {each.measurement.took}"))
    facts += [_code_kept(f"costs: {line}") for line in each.costs]
    facts += [_plain(f"failed: {line}") for line in each.failures]
    yield "\n".join(f"- {fact}" for fact in facts)
    for finding in each.findings:
        yield from _finding(finding)


def _finding(finding: Finding) -> Iterator[str]:
    yield f"#### {finding.judgement}: {_plain(finding.claim.statement)}"
    yield f"Paper: {_plain(claim_text(finding.claim))}"
    yield f"Why: {_plain(finding.reason)}"
    if finding.measured:
        yield "Measured:"
        yield _list(finding.measured)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_plain(line)}" for line in lines)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], marks: str) -> str:
    lines = [head, ("---", *[marks] * (len(head) - 1)), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """One line that Markdown shows as it is."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code_kept(text: str) -> str:
    """As `_plain`, but what stands between backticks stays code."""
    pieces = text.split("`")
    return "`".join(piece if place % 2 else SPECIAL.sub(r"\\\1", piece) for place, piece in enumerate(pieces))


def _anchor(heading: str) -> str:
    """The place of a heading as code forges name it: small letters, spaces to hyphens, other signs dropped."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
