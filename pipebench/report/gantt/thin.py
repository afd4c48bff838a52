"""Fewer bars: what is too short to be seen is drawn as one bar with its neighbours."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipebench.report.gantt.gantt import MANY, Bar, Gantt, Row

MOST_ROWS = 64
"""Rows of devices in one picture; of links there are as many at most."""


def thinned(whole: Gantt, shortest_ns: int) -> tuple[Gantt, tuple[str, ...]]:
    """The picture without bars shorter than shortest_ns next to one another, and what was left out, in words."""
    rows = [*_first(whole.rows, link=False), *_first(whole.rows, link=True)]
    fewer = tuple(replace(row, bars=tuple(_merged(row.bars, shortest_ns, whole.until_ns))) for row in rows)
    notes = []
    if len(rows) < len(whole.rows):
        notes.append(f"{len(whole.rows) - len(rows)} of {len(whole.rows)} rows are left out")
    joined = sum(bar.count for row in fewer for bar in row.bars if bar.kind == MANY)
    if joined:
        notes.append(f"{joined:,} tasks too short to be told apart are drawn together")
    return replace(whole, rows=fewer), tuple(notes)


def _first(rows: Iterable[Row], *, link: bool) -> list[Row]:
    return [row for row in rows if row.link == link][:MOST_ROWS]


def _merged(bars: Iterable[Bar], shortest_ns: int, until_ns: int) -> Iterator[Bar]:
    """Bars in order; a run of short ones with no gap as long as shortest_ns between them becomes one."""
    held: Bar | None = None
    for whole in bars:
        if whole.start_ns >= until_ns:
            break
        bar = replace(whole, end_ns=min(whole.end_ns, until_ns))
        short = bar.end_ns - bar.start_ns < shortest_ns
        if held is not None and short and bar.start_ns - held.end_ns < shortest_ns:
            end = max(held.end_ns, bar.end_ns)
            held = replace(held, kind=MANY, end_ns=end, count=held.count + 1)
        else:
            if held is not None:
                yield held
            held = bar if short else None
            if not short:
                yield bar
    if held is not None:
        yield held
