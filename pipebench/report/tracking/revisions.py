"""A comparison of two revisions as a report."""

from collections.abc import Iterator

from pipebench.report.tracking.blocks import Block, Heading, Items, Paragraph, Report, Table
from pipebench.report.tracking.words import column_words, percent
from pipebench.track.against.compared import Against, ComparedSubject


def against_report(against: Against) -> Report:
    """The whole report."""
    slower = sum(each.pairs.answer == "slower" for each in against.subjects)
    worse = sum(each.outcome == "worse" for each in against.subjects)
    if slower or worse:
        verdict = Paragraph(f"{slower} slower, {worse} with a worse plan or more work.", "bad")
    elif not any(each.pairs.count for each in against.subjects) and not any(
        each.columns for each in against.subjects
    ):
        verdict = Paragraph("Nothing became worse; no search was timed.", "warn")
    else:
        verdict = Paragraph("Nothing became worse.", "good")
    return Report(
        f"{against.distribution}: {against.after} against {against.before}", [verdict, *_blocks(against)]
    )


def _blocks(against: Against) -> Iterator[Block]:
    if against.notices:
        yield Items(against.notices)
    yield Heading("Search times")
    unit = "CPU time over that of the calibration beside it" if against.calibrated else "CPU time"
    yield Paragraph(f"{unit}, after / before, processes in turns; the interval misses the median in 1 % of cases.")
    yield Table(
        ("planner and problem", "change", "interval", "pairs", "answer"),
        [_row(each) for each in against.subjects],
        figures=(1, 2, 3),
    )
    changed = [each for each in against.subjects if each.columns or each.notice]
    if changed:
        yield Heading("Plans and work")
        yield Items([_exact(each) for each in changed])


def _row(each: ComparedSubject) -> list[str]:
    pairs = each.pairs
    interval = "-"
    if pairs.low is not None and pairs.high is not None:
        interval = f"{percent(pairs.low)} … {percent(pairs.high)}"
    change = percent(pairs.change) if pairs.count else "-"
    return [each.subject, change, interval, str(pairs.count), pairs.answer if pairs.count else "not timed"]


def _exact(each: ComparedSubject) -> str:
    told = "; ".join(map(column_words, each.columns))
    return f"{each.subject}: {each.notice or f'{each.outcome}: {told}'}"
