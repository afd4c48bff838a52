"""Many links as one lane: how many transfers are under way, over time."""

from collections.abc import Iterator

from pipebench.report.chart.colours import TRANSFERS
from pipebench.report.chart.elements import text
from pipebench.report.gantt.gantt import Gantt, GanttRow

MOST_LINKS = 6
"""So many links or fewer have a lane each."""
COLUMN, LANE, WORDS = 5.0, 36.0, 18.0
"""Width of a column, height of the lane, height of the words above it."""


def links_of(gantt: Gantt) -> list[GanttRow]:
    """The rows of links."""
    return [row for row in gantt.rows if row.link]


def links_lane(gantt: Gantt, left: float, top: float, scale: float) -> Iterator[str]:
    """A column for each 5 pixels, outputs below and gradients on top: the mean number of transfers under way."""
    links = links_of(gantt)
    columns = max(1, round(gantt.until_ns * scale / COLUMN))
    column_ns = gantt.until_ns / columns
    under_way = {kind: [0.0] * columns for kind in TRANSFERS}
    for bar in (bar for row in links for bar in row.bars):
        for column in range(int(bar.start_ns / column_ns), columns):
            begin, end = column * column_ns, (column + 1) * column_ns
            if begin >= bar.end_ns:
                break
            shared = min(end, bar.end_ns) - max(begin, bar.start_ns)
            under_way[bar.kind][column] += max(0.0, shared) / column_ns
    most = max(map(sum, zip(*under_way.values(), strict=True))) or 1.0
    said = f"{len(links)} links: transfers under way, at most {most:.2g} at once (mean of {gantt.time(column_ns)})"
    yield text(left, top + 12, said)
    yield text(left - 8, top + WORDS + LANE / 2 + 4, "links", anchor="end")
    heights = [0.0] * columns
    for kind, amounts in under_way.items():
        for column, amount in enumerate(amounts):
            if amount:
                height = LANE * amount / most
                x, y = left + column * column_ns * scale, top + WORDS + LANE - heights[column] - height
                place = f'x="{x:.1f}" y="{y:.2f}" width="{column_ns * scale:.1f}" height="{height:.2f}"'
                yield f'<rect {place} fill="{TRANSFERS[kind]}"/>'
                heights[column] += height
