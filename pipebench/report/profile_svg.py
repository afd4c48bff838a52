"""A profile as bars: forward and backward time of each operator, or of runs of them where there are many."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.domain.profile import DeviceCosts, Profile
from pipebench.domain.units import readable_seconds
from pipebench.report.chart.axis import from_zero, name
from pipebench.report.chart.elements import LETTER, PALE, SIZE, document, hint, line, text

WIDTH, HEIGHT, LEFT, MARGIN, HEAD = 900.0, 260.0, 70.0, 16.0, 58.0
MOST_BARS = 150
COLOURS = {"forward": "#9ecae1", "backward": "#fdbe85"}


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
    axis = from_zero([1e3 * (bar.forward_s + bar.backward_s) for bar in bars], HEAD + HEIGHT, HEAD)
    each = WIDTH / max(len(bars), 1)
    title = f"{profile.name} on {costs.device_type}, micro-batch {costs.micro_batches[-1]}"
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_legend(bars)]
    for tick in axis.ticks:
        inside.append(line(LEFT, axis.at(tick), LEFT + WIDTH, axis.at(tick), PALE, 0.6))
        inside.append(text(LEFT - 6, axis.at(tick) + 4, name(tick), anchor="end"))
    inside.append(text(MARGIN, HEAD + HEIGHT / 2, "ms", turned=True))
    for position, bar in enumerate(bars):
        x = LEFT + position * each
        middle = axis.at(1e3 * bar.forward_s)
        words = (
            f"{bar.label}: forward {readable_seconds(bar.forward_s)}, backward {readable_seconds(bar.backward_s)}"
        )
        inside.append(_box(x, middle, each, axis.at(0) - middle, "forward", words))
        top = axis.at(1e3 * (bar.forward_s + bar.backward_s))
        inside.append(_box(x, top, each, middle - top, "backward", words))
    inside.append(text(LEFT, HEAD + HEIGHT + 18, bars[0].names[0] if bars else "no operators"))
    inside.append(text(LEFT + WIDTH, HEAD + HEIGHT + 18, bars[-1].names[-1] if bars else "", anchor="end"))
    return document(LEFT + WIDTH + MARGIN, HEAD + HEIGHT + 30, title, inside)


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
    x = MARGIN
    for words, colour in COLOURS.items():
        yield f'<rect x="{x:.0f}" y="36" width="14" height="12" fill="{colour}" stroke="#444"/>'
        yield text(x + 20, 46, words)
        x += 20 + LETTER * len(words) + 18
    together = max((len(bar.names) for bar in bars), default=1)
    if together > 1:
        yield text(x, 46, f"each bar: {together} operators in a row")


def _box(x: float, y: float, width: float, height: float, what: str, words: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width - 0.4, 0.4):.1f}" height="{max(height, 0.0):.1f}"'
    return f'<rect {place} fill="{COLOURS[what]}">{hint(words)}</rect>'
