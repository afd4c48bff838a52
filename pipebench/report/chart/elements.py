"""SVG elements as text, axes with round ticks, and from values to pixels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.documents.printable import markup
from pipebench.report.chart.colours import CURVES, INK, MARK, PAPER, style_of

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
SIZE = 12
LETTER = 7.2
"""Pixels that a letter takes at SIZE, generously."""
DASHES = "6 4"
SMALL_WIDTH = 300.0
"""Of a chart that stands beside others, or alone on the screen of a telephone."""


def colour_of(number: int) -> str:
    """The colour of a curve."""
    return CURVES[number % len(CURVES)]


def text(
    x: float, y: float, words: str, *, anchor: str = "start", bold: bool = False, turned: bool = False
) -> str:
    """Words whose baseline starts (or has its middle or end) at a place; turned: read from below."""
    weight = ' font-weight="bold"' if bold else ""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}"{weight}{turn}>'
        f"{markup(words, quote=False)}</text>"
    )


def shortened(words: str, width: float) -> str:
    """The words, or so much of them with `…` as surely fits into so many pixels."""
    letters = max(1, int(width // LETTER))
    return words if len(words) <= letters else f"{words[: letters - 1]}…"


def hint(words: str) -> str:
    """Words that show when the element around is pointed at, and that screen readers read."""
    return f"<title>{markup(words, quote=False)}</title>"


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = INK, width: float = 1.0) -> str:
    """A straight line."""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{stroke}" stroke-width="{width:g}"/>'


def upright_dashes(x: float, y1: float, y2: float, stroke: str) -> str:
    """An upright line in dashes."""
    ends = f'x1="{x:.1f}" y1="{y1:.1f}" x2="{x:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{stroke}" stroke-width="1.4" stroke-dasharray="{DASHES}"/>'


def dashed_line(x1: float, y: float, x2: float, stroke: str) -> str:
    """A level line in dashes."""
    ends = f'x1="{x1:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y:.1f}"'
    return f'<line {ends} stroke="{stroke}" stroke-width="1" stroke-dasharray="{DASHES}"/>'


def path(places: Sequence[tuple[float, float]], colour: int, dashed: bool, width: float = 1.8) -> str:
    """A curve through places."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = f' stroke-dasharray="{DASHES}"' if dashed else ""
    style = f'fill="none" stroke="{colour_of(colour)}" stroke-width="{width:.1f}"'
    return f'<polyline points="{points}" {style}{dash}/>'


def marker(x: float, y: float, colour: int, hollow: bool = False, scale: float = 1.0) -> str:
    """A mark of 7 pixels times scale, whose shape goes with the colour."""
    stroke = colour_of(colour)
    fill = PAPER if hollow else stroke
    style = f'fill="{fill}" stroke="{stroke}" stroke-width="1.2"'
    shape = colour % 4
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3.4 * scale:.1f}" {style}/>'
    corners = {
        1: ((-3.1, -3.1), (3.1, -3.1), (3.1, 3.1), (-3.1, 3.1)),
        2: ((0.0, -4.0), (3.8, 3.0), (-3.8, 3.0)),
        3: ((0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)),
    }[shape]
    points = " ".join(f"{x + scale * dx:.1f},{y + scale * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {style}/>'


def cross(x: float, y: float, colour: int) -> str:
    """The mark of a cell without a schedule."""
    left, right, above, below = (f"{each:.1f}" for each in (x - 3, x + 3, y - 3, y + 3))
    strokes = f"M{left} {above}L{right} {below}M{left} {below}L{right} {above}"
    return f'<path d="{strokes}" stroke="{colour_of(colour)}" stroke-width="1.6" class="infeasible"/>'


def document(width: float, height: float, title: str, inside: Sequence[str], description: str = "") -> str:
    """A whole SVG file. It has its own paper, and follows the light or dark scheme of who looks.

    description: what it shows, for those who cannot see it.
    """
    body = "\n".join(inside)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{MARK}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONT}" font-size="{SIZE}">'
    )
    words = f"<title>{markup(title, quote=False)}</title>"
    if description:
        words += f"<desc>{markup(description, quote=False)}</desc>"
    return f"{head}\n{words}\n{style_of(body)}\n{body}\n</svg>\n"


MOST_EVERY = 9
"""So many values or fewer on an axis are all named."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Values low … high lie on pixels start … end (end may be the smaller one)."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def from_zero(values: Sequence[float], start: float, end: float) -> Axis:
    """From 0 to a round number at or above the largest value."""
    ticks = round_ticks(0.0, max(values, default=1.0) or 1.0)
    return Axis(0.0, ticks[-1], start, end, ticks)


def around(values: Sequence[float], start: float, end: float) -> Axis:
    """From the smallest to the largest value with some room; few values are ticks themselves."""
    distinct = sorted(set(values)) or [0.0]
    low, high = distinct[0], distinct[-1]
    room = 0.06 * (high - low) or 0.5
    if len(distinct) <= MOST_EVERY:
        ticks = tuple(distinct)
    else:
        ticks = tuple(tick for tick in round_ticks(low, high) if low <= tick <= high)
    return Axis(low - room, high + room, start, end, ticks)


def round_ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten, the first at or below `low`, the last at or above `high`."""
    raw = (high - low) / about or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(number * step, 12) for number in range(first, max(last, first + 1) + 1))


def name(tick: float) -> str:
    """A tick in words."""
    return f"{tick:,.0f}" if tick == int(tick) else f"{tick:g}"
