"""What a report is made of, before it is HTML, Markdown or text. All strings are plain text."""

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


Cell = str | Spark


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings. figures: the columns whose cells stand to the right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    figures: Sequence[int] = ()


Block = Heading | Paragraph | Items | Table


@dataclass(frozen=True, slots=True)
class Report:
    """A title and what follows."""

    title: str
    blocks: Sequence[Block]
