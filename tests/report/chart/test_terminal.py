"""Pictures of a terminal: each letter in its column, strangers' characters visible, the look of each style."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.report.chart.colours import INK, STROKE
from pipebench.report.chart.terminal import LETTER, LINE, WARNING, terminal_svg
from tests.report.chart.drawn import all_of, lines_of
from tests.report.printed import printed

CELLS = st.text(st.sampled_from("ab1.<&>\"' │†漢é*"), min_size=1, max_size=9)


def show(console: Console, rows: list[list[str]]) -> None:
    table = Table(box=None, pad_edge=False)
    for number in range(len(rows[0])):
        table.add_column(Text("x"), justify="right" if number % 2 else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row), style="dim" if row[0] == "a" else "")
    console.print(table)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1)))
def test_every_letter_stands_in_its_column(rows: list[list[str]]) -> None:
    picture = terminal_svg(lambda console: show(console, rows), 70, "a table")
    expected = [line.rstrip() for line in printed(show, rows, 70).splitlines()]
    while not expected[-1]:
        expected.pop()
    assert lines_of(picture, LETTER, LINE) == expected


def test_styles_have_their_look() -> None:
    def styled(console: Console) -> None:
        console.print(Text.assemble("plain ", ("bold", "bold"), " ", ("dim", "dim"), " ", ("odd", "yellow")))

    texts = all_of(ET.fromstring(terminal_svg(styled, 60, "styles")), "text")
    looks = {each.text: (each.attrib["fill"], each.attrib.get("font-weight")) for each in texts}
    assert looks == {
        "plain": (INK, None),
        "bold": (INK, "bold"),
        "dim": (STROKE, None),
        "odd": (WARNING, None),
    }


def test_characters_that_a_terminal_obeys_are_seen() -> None:
    """A stranger's row can neither paint the picture nor break it."""
    picture = terminal_svg(lambda console: console.print("a\x1b[1mb\x07c\u202ed", markup=False), 60, "odd")
    assert lines_of(picture, LETTER, LINE) == ["a\u241b[1mb\u2407c\ufffdd"]
    assert "font-weight" not in picture
    picture = terminal_svg(
        lambda console: console.print(Text("a\x1b[1mb\u202ed")), 60, "a text that is made before"
    )
    assert lines_of(picture, LETTER, LINE) == ["a\u241b[1mb\ufffdd"]
    assert "font-weight" not in picture


def test_a_picture_is_as_large_as_its_lines() -> None:
    root = ET.fromstring(terminal_svg(lambda console: console.print("x" * 50 + "\n\nend\n\n"), 60, "size"))
    texts = all_of(root, "text")
    assert float(root.attrib["width"]) >= 50 * LETTER
    assert float(texts[-1].attrib["y"]) < float(root.attrib["height"]) < float(texts[-1].attrib["y"]) + 2 * LINE
