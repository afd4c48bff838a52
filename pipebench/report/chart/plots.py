"""Single plots: a profile as bars, and quality against search time."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.documents.units import readable_seconds
from pipebench.domain.profile import DeviceCosts, Profile
from pipebench.domain.row import Row
from pipebench.report.chart.colours import OUTLINE, PALE, TASKS
from pipebench.report.chart.elements import LETTER, SIZE, document, from_zero, hint, line, marker, name, text

PROFILE_WIDTH, PROFILE_HEIGHT, PROFILE_LEFT, PROFILE_MARGIN, PROFILE_HEAD = 900.0, 260.0, 70.0, 16.0, 58.0
MOST_BARS = 150
COLOURS = {"forward": TASKS["F"], "backward": TASKS["B"]}


@dataclass(frozen=True, slots=True)
class _Bar:
    names: tuple[str, ...]
    forward_s: float
    backward_s: float

    @property
    def label(self) -> str:
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]} … {self.names[-1]}"


def profile_svg(profile: Profile, device: str | None = None) -> str:
    """Bars in the order of the graph, at the largest profiled micro-batch of a device type (the first)."""
    costs = next(each for each in profile.costs if device in (None, each.device_type))
    bars = _bars(costs)
    axis = from_zero(
        [1e3 * (bar.forward_s + bar.backward_s) for bar in bars], PROFILE_HEAD + PROFILE_HEIGHT, PROFILE_HEAD
    )
    each = PROFILE_WIDTH / max(len(bars), 1)
    title = f"{profile.name} on {costs.device_type}, micro-batch {costs.micro_batches[-1]}"
    inside = [text(PROFILE_MARGIN, PROFILE_MARGIN + SIZE, title, bold=True), *_legend(bars)]
    for tick in axis.ticks:
        inside.append(line(PROFILE_LEFT, axis.at(tick), PROFILE_LEFT + PROFILE_WIDTH, axis.at(tick), PALE, 0.6))
        inside.append(text(PROFILE_LEFT - 6, axis.at(tick) + 4, name(tick), anchor="end"))
    inside.append(text(PROFILE_MARGIN, PROFILE_HEAD + PROFILE_HEIGHT / 2, "ms", turned=True))
    for position, bar in enumerate(bars):
        x = PROFILE_LEFT + position * each
        middle = axis.at(1e3 * bar.forward_s)
        words = (
            f"{bar.label}: forward {readable_seconds(bar.forward_s)}, backward {readable_seconds(bar.backward_s)}"
        )
        inside.append(_box(x, middle, each, axis.at(0) - middle, "forward", words))
        top = axis.at(1e3 * (bar.forward_s + bar.backward_s))
        inside.append(_box(x, top, each, middle - top, "backward", words))
    inside.append(
        text(PROFILE_LEFT, PROFILE_HEAD + PROFILE_HEIGHT + 18, bars[0].names[0] if bars else "no operators")
    )
    inside.append(
        text(
            PROFILE_LEFT + PROFILE_WIDTH,
            PROFILE_HEAD + PROFILE_HEIGHT + 18,
            bars[-1].names[-1] if bars else "",
            anchor="end",
        )
    )
    return document(
        PROFILE_LEFT + PROFILE_WIDTH + PROFILE_MARGIN, PROFILE_HEAD + PROFILE_HEIGHT + 30, title, inside
    )


def _bars(costs: DeviceCosts) -> list[_Bar]:
    """Runs of as many operators each as make 150 bars at most."""
    together = -(-len(costs.operators) // MOST_BARS) or 1
    made = []
    for first in range(0, len(costs.operators), together):
        run = costs.operators[first : first + together]
        names = tuple(each.operator for each in run)
        made.append(_Bar(names, sum(e.forward_s[-1] for e in run), sum(e.backward_s[-1] for e in run)))
    return made


def _legend(bars: Sequence[_Bar]) -> Iterator[str]:
    x = PROFILE_MARGIN
    for words, colour in COLOURS.items():
        yield f'<rect x="{x:.0f}" y="36" width="14" height="12" fill="{colour}" stroke="{OUTLINE}"/>'
        yield text(x + 20, 46, words)
        x += 20 + LETTER * len(words) + 18
    together = max((len(bar.names) for bar in bars), default=1)
    if together > 1:
        yield text(x, 46, f"each bar: {together} operators in a row")


def _box(x: float, y: float, width: float, height: float, what: str, words: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width - 0.4, 0.4):.1f}" height="{max(height, 0.0):.1f}"'
    return f'<rect {place} fill="{COLOURS[what]}">{hint(words)}</rect>'


QUALITY_WIDTH, QUALITY_HEIGHT, QUALITY_LEFT, QUALITY_MARGIN, QUALITY_HEAD = 520.0, 280.0, 60.0, 16.0, 40.0


def quality_svg(rows: Sequence[Row], title: str) -> str:
    """bound / simulated (1 is proven optimal) over search CPU time; rows without either are left out."""
    shown = [(row, share, spent) for row in rows for share, spent in _place(row)]
    planners = list(dict.fromkeys(row.planner for row, _, _ in shown))
    powers = [math.log10(spent) for _, _, spent in shown] or [-2.0]
    low, high = math.floor(min(powers)), max(math.ceil(max(powers)), math.floor(min(powers)) + 1)
    inside = [text(QUALITY_MARGIN, QUALITY_MARGIN + SIZE, title, bold=True), *_axes(low, high)]
    for row, share, spent in shown:
        x = QUALITY_LEFT + QUALITY_WIDTH * (math.log10(spent) - low) / (high - low)
        y = QUALITY_HEAD + QUALITY_HEIGHT * (1 - share)
        words = f"{row.planner} on {row.profile}: {100 * share:.0f} % of the bound, {readable_seconds(spent)}"
        inside.append(f"<g>{hint(words)}{marker(x, y, planners.index(row.planner))}</g>")
    for position, planner in enumerate(planners):
        y = QUALITY_HEAD + 6 + 18 * position
        inside.append(marker(QUALITY_LEFT + QUALITY_WIDTH + 24, y, position))
        inside.append(text(QUALITY_LEFT + QUALITY_WIDTH + 34, y + 4, planner))
    right = LETTER * max((len(planner) for planner in planners), default=0)
    height = max(QUALITY_HEAD + QUALITY_HEIGHT + 48, QUALITY_HEAD + 18 * len(planners) + QUALITY_MARGIN)
    return document(QUALITY_LEFT + QUALITY_WIDTH + 50 + right, height, title, inside)


def _place(row: Row) -> Iterator[tuple[float, float]]:
    if row.bound_s and row.simulated_s and row.search_cpu_s:
        yield min(1.0, row.bound_s / row.simulated_s), row.search_cpu_s


def _axes(low: int, high: int) -> Iterator[str]:
    for tick in range(0, 101, 20):
        y = QUALITY_HEAD + QUALITY_HEIGHT * (1 - tick / 100)
        yield line(QUALITY_LEFT, y, QUALITY_LEFT + QUALITY_WIDTH, y, PALE, 0.6)
        yield text(QUALITY_LEFT - 6, y + 4, f"{tick} %", anchor="end")
    for power in range(low, high + 1):
        x = QUALITY_LEFT + QUALITY_WIDTH * (power - low) / (high - low)
        yield line(x, QUALITY_HEAD, x, QUALITY_HEAD + QUALITY_HEIGHT, PALE, 0.6)
        yield text(x, QUALITY_HEAD + QUALITY_HEIGHT + 16, readable_seconds(10.0**power), anchor="middle")
    yield text(
        QUALITY_LEFT + QUALITY_WIDTH / 2, QUALITY_HEAD + QUALITY_HEIGHT + 36, "search (CPU time)", anchor="middle"
    )
    yield text(14, QUALITY_HEAD + QUALITY_HEIGHT / 2, "bound / simulated", anchor="middle", turned=True)
