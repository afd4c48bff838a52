"""Quality against search time: each row a mark, how near to the bound upwards, seconds of search to the right."""

import math
from collections.abc import Iterator, Sequence

from pipebench.domain.row import Row
from pipebench.domain.units import readable_seconds
from pipebench.report.chart.elements import LETTER, PALE, SIZE, document, hint, line, marker, text

WIDTH, HEIGHT, LEFT, MARGIN, HEAD = 520.0, 280.0, 60.0, 16.0, 40.0


def quality_svg(rows: Sequence[Row], title: str) -> str:
    """bound / simulated (1 is proven optimal) over search CPU time; rows without either are left out."""
    shown = [(row, share, spent) for row in rows for share, spent in _place(row)]
    planners = list(dict.fromkeys(row.planner for row, _, _ in shown))
    powers = [math.log10(spent) for _, _, spent in shown] or [-2.0]
    low, high = math.floor(min(powers)), max(math.ceil(max(powers)), math.floor(min(powers)) + 1)
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_axes(low, high)]
    for row, share, spent in shown:
        x = LEFT + WIDTH * (math.log10(spent) - low) / (high - low)
        y = HEAD + HEIGHT * (1 - share)
        words = f"{row.planner} on {row.profile}: {100 * share:.0f} % of the bound, {readable_seconds(spent)}"
        inside.append(f"<g>{hint(words)}{marker(x, y, planners.index(row.planner))}</g>")
    for position, planner in enumerate(planners):
        y = HEAD + 6 + 18 * position
        inside.append(marker(LEFT + WIDTH + 24, y, position))
        inside.append(text(LEFT + WIDTH + 34, y + 4, planner))
    right = LETTER * max((len(planner) for planner in planners), default=0)
    height = max(HEAD + HEIGHT + 48, HEAD + 18 * len(planners) + MARGIN)
    return document(LEFT + WIDTH + 50 + right, height, title, inside)


def _place(row: Row) -> Iterator[tuple[float, float]]:
    if row.bound_s and row.simulated_s and row.search_cpu_s:
        yield min(1.0, row.bound_s / row.simulated_s), row.search_cpu_s


def _axes(low: int, high: int) -> Iterator[str]:
    for tick in range(0, 101, 20):
        y = HEAD + HEIGHT * (1 - tick / 100)
        yield line(LEFT, y, LEFT + WIDTH, y, PALE, 0.6)
        yield text(LEFT - 6, y + 4, f"{tick} %", anchor="end")
    for power in range(low, high + 1):
        x = LEFT + WIDTH * (power - low) / (high - low)
        yield line(x, HEAD, x, HEAD + HEIGHT, PALE, 0.6)
        yield text(x, HEAD + HEIGHT + 16, readable_seconds(10.0**power), anchor="middle")
    yield text(LEFT + WIDTH / 2, HEAD + HEIGHT + 36, "search (CPU time)", anchor="middle")
    yield text(14, HEAD + HEIGHT / 2, "bound / simulated", anchor="middle", turned=True)
