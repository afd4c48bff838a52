"""Predicted against measured: markers lie where the times say, on the diagonal where they agree."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.report.chart.scatter import HEAD, LEFT, SIDE, ScatterPoint, scatter_svg
from tests.report.chart.drawn import SVG, all_of, words_of

SECONDS = st.floats(1e-4, 1e4)


def circles(points: list[ScatterPoint]) -> list[tuple[float, float]]:
    root = ET.fromstring(scatter_svg(points, ["one"], "Seconds"))
    found = [element for group in root.iter(f"{SVG}g") for element in group.iter(f"{SVG}circle")]
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in found]


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=6))
def test_a_marker_lies_below_the_diagonal_where_it_is_predicted_too_fast(pairs: list[tuple[float, float]]) -> None:
    points = [ScatterPoint(f"r{at}", 0, measured, predicted) for at, (measured, predicted) in enumerate(pairs)]
    places = circles(points)
    assert len(places) == len(points)
    for (x, y), (measured, predicted) in zip(places, pairs, strict=True):
        across, up = x - LEFT, HEAD + SIDE - y
        assert -0.1 <= across <= SIDE + 0.1
        assert -0.1 <= up <= SIDE + 0.1
        if abs(math.log(predicted / measured)) > 0.1:
            assert (up < across) == (predicted < measured)


def test_equal_times_lie_on_the_diagonal() -> None:
    ((x, y),) = circles([ScatterPoint("a", 0, 3.0, 3.0)])
    assert x - LEFT == pytest.approx(HEAD + SIDE - y, abs=0.11)


def test_the_lines_are_the_diagonal_and_ten_per_cent_beside_it() -> None:
    picture = scatter_svg([ScatterPoint("a", 0, 0.01, 0.02), ScatterPoint("b", 0, 100.0, 90.0)], ["one"], "t")
    root = ET.fromstring(picture)
    lines = [each for each in all_of(root, "line") if each.attrib.get("class") == "diagonal"]
    decades = math.log10(100 / 0.01)
    for each, factor in zip(lines, (1.0, 1.1, 0.9), strict=True):
        across = float(each.attrib["x1"]) - LEFT
        up = HEAD + SIDE - float(each.attrib["y1"])
        assert (up - across) / SIDE * decades == pytest.approx(math.log10(factor), abs=0.002)


def test_a_point_says_its_name_times_and_error() -> None:
    picture = scatter_svg([ScatterPoint("my run", 0, 2.0, 1.5)], ["group of <mine>"], "t")
    assert "my run: measured 2.00 s, predicted 1.50 s (-25.0 %)" in picture
    assert any("group of <mine>" in words for words in words_of(ET.fromstring(picture)))
    assert "prefers-color-scheme: dark" in picture


def test_a_second_round_of_colours_is_hollow() -> None:
    names = [f"s{at}" for at in range(9)]
    picture = scatter_svg(
        [ScatterPoint(name, at, 1.0 + at, 1.0 + at) for at, name in enumerate(names)], names, "t"
    )
    fills = re.findall(r'<circle [^>]*fill="(#\w+)" stroke="#0072b2"', picture)
    assert fills == ["#0072b2", "#ffffff"] * 2  # the points, then the legend
