"""A chart read back from its SVG."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass

from rich.cells import cell_len

from pipebench.domain.artefact import Figure
from pipebench.report.chart import svg

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 7.5
"""Pixels of a letter at 12 pixels, more than the average."""


@dataclass(frozen=True)
class Box:
    """Where a text lies; its words."""

    words: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether they share more than an edge."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 0.5 and down > 0.5


def root_of(figure: Figure) -> ET.Element:
    """The parsed file; malformed XML is an error."""
    return ET.fromstring(svg(figure))


def all_of(root: ET.Element, tag: str) -> list[ET.Element]:
    """Every element of a kind, in the order of the file."""
    return list(root.iter(f"{SVG}{tag}"))


def words_of(root: ET.Element) -> list[str]:
    """Every text."""
    return [element.text or "" for element in all_of(root, "text")]


def boxes_of(root: ET.Element) -> list[Box]:
    """Where every text lies, about."""
    return [_box(element) for element in all_of(root, "text")]


def lines_of(picture: str, letter: float, line: float) -> list[str]:
    """The lines of a terminal in a picture, spaces at their ends left out. letter, line: pixels of one."""
    lines: dict[int, str] = {}
    texts = all_of(ET.fromstring(picture), "text")
    places = [(float(each.attrib["x"]), float(each.attrib["y"]), each.text or "") for each in texts]
    left, top = min(x for x, _, _ in places), min(y for _, y, _ in places)
    for x, y, words in sorted(places):
        number = round((y - top) / line)
        column = round((x - left) / letter)
        so_far = lines.get(number, "")
        assert cell_len(so_far) < column or not so_far, f"{words!r} stands on {so_far!r}"
        lines[number] = so_far + " " * (column - cell_len(so_far)) + words
    return [lines.get(number, "") for number in range(max(lines) + 1)]


def _box(element: ET.Element) -> Box:
    words = element.text or ""
    x, y = float(element.attrib["x"]), float(element.attrib["y"])
    length = LETTER * len(words)
    before = {"start": 0.0, "middle": length / 2, "end": length}[element.attrib["text-anchor"]]
    if "transform" in element.attrib:
        return Box(words, x - 10, y - length + before, x + 2, y + before)
    return Box(words, x - before, y - 10, x - before + length, y + 2)
