"""What a report is made of before it is HTML, Markdown or text, and series small enough for a cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["bad", "good", "warn", "plain"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A section begins."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Some sentences. tone: how it is meant; the words say it too."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Spark:
    """A series in a cell. steps: positions at which a new level begins."""

    values: Sequence[float]
    steps: Sequence[int] = ()


BlockCell = str | Spark


@dataclass(frozen=True, slots=True)
class BlockTable:
    """Rows under headings. figures: the columns whose cells stand to the right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[BlockCell]]
    figures: Sequence[int] = ()


Block = Heading | Paragraph | Items | BlockTable


@dataclass(frozen=True, slots=True)
class TrackingReport:
    """A title and what follows."""

    title: str
    blocks: Sequence[Block]


Place = tuple[float, float]
WIDTH, HEIGHT, EDGE = 150.0, 28.0, 3.0
NIGHTS, LETTERS = 60, 30
BARS = "▁▂▃▄▅▆▇█"
LINE, STEP, LAST = "#0072b2", "#d55e00", "#222222"
LEAST_RANGE = 0.1
"""Of the middle: a quiet series is drawn as a quiet one."""


def spark_svg(spark: Spark) -> str:
    """The last nights as a curve, a stroke where a new level begins, a dot on the last night."""
    values = list(spark.values[-NIGHTS:])
    offset = len(spark.values) - len(values)
    places = curve_places(values, WIDTH, HEIGHT)
    strokes = "".join(
        f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{HEIGHT:.0f}" stroke="{STEP}" stroke-width="1"/>'
        for x, _ in (places[step - offset] for step in spark.steps if step >= offset)
    )
    x, y = places[-1]
    return (
        f'<svg width="{WIDTH:.0f}" height="{HEIGHT:.0f}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
        f'aria-label="{len(spark.values)} nights, {values[0]:.4g} to {values[-1]:.4g}">{strokes}'
        f'<polyline points="{curve_points(places)}" fill="none" stroke="{LINE}" stroke-width="1.4"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{LAST}"/></svg>'
    )


def curve_places(values: Sequence[float], width: float, height: float, above: float = 0.0) -> list[Place]:
    """The pixels of a series in a picture of that size, from left to right. above: left free at the top."""
    low, high = _drawn_range(values)
    across = (width - 2 * EDGE) / max(1, len(values) - 1)
    tall = height - 2 * EDGE - above
    return [
        (EDGE + across * position, height - EDGE - tall * (value - low) / (high - low))
        for position, value in enumerate(values)
    ]


def curve_points(places: Sequence[Place]) -> str:
    """As a polyline of SVG takes them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def spark_text(spark: Spark) -> str:
    """The last nights, a bar a night."""
    values = spark.values[-LETTERS:]
    low, high = _drawn_range(values)
    return "".join(BARS[min(len(BARS) - 1, int(len(BARS) * (value - low) / (high - low)))] for value in values)


def _drawn_range(values: Sequence[float]) -> tuple[float, float]:
    """Lower and upper end of a curve; at least LEAST_RANGE of their middle apart."""
    low, high = min(values), max(values)
    least = LEAST_RANGE * abs(low + high) / 2 or 1.0
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    return low, high
