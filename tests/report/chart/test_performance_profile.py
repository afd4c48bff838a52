"""Performance profiles as SVG: the steps, the axis of factors, the counts, what tells curves apart."""

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from pipebench.bench.standings import Entrant
from pipebench.bench.standings.profiles import PerformanceCurve
from pipebench.report.chart.performance_profile import performance_profile_svg
from tests.report.chart.drawn import all_of, words_of

SVG = "{http://www.w3.org/2000/svg}"


def curve(planner: str, *steps: tuple[float, int]) -> PerformanceCurve:
    return PerformanceCurve(Entrant(planner=planner), steps)


def drawn(*curves: PerformanceCurve, problems: int = 8) -> ET.Element:
    return ET.fromstring(performance_profile_svg(curves, problems, "sync: some"))


def curves_of(root: ET.Element) -> list[list[tuple[float, float]]]:
    """The places of each curve of the plot."""
    groups = [group for group in root.iter(f"{SVG}g") if group.attrib.get("class") == "curve"]
    lines = [group.find(f"{SVG}polyline") for group in groups]
    return [
        [(float(x), float(y)) for x, y in (place.split(",") for place in line.attrib["points"].split())]
        for line in lines
        if line is not None
    ]


def tick(root: ET.Element, words: str, axis: str) -> float:
    (found,) = (float(each.attrib[axis]) for each in all_of(root, "text") if each.text == words)
    return found


def test_each_step_stands_at_its_factor_and_as_high_as_its_share() -> None:
    root = drawn(curve("a", (1.0, 4), (1.5, 6)), curve("b", (1.1, 2), (2.0, 8)))
    none, all_solved = (tick(root, words, "y") - 4 for words in ("0 %", "100 %"))
    one, double = (tick(root, words, "x") for words in ("1", "2"))
    first, second = curves_of(root)

    def height(share: float) -> float:
        return none + share * (all_solved - none)

    def across(tau: float) -> float:
        return one + (double - one) * math.log2(tau)

    assert first[0] == pytest.approx((one, height(0.5)), abs=0.2)
    assert any(place == pytest.approx((across(1.5), height(0.75)), abs=0.2) for place in first)
    assert first[-1] == pytest.approx((double, height(0.75)), abs=0.2)
    assert second[0] == pytest.approx((one, height(0.0)), abs=0.2)
    assert second[-1] == pytest.approx((double, height(1.0)), abs=0.2)
    for places in (first, second):
        assert all(left <= right and low >= high for (left, low), (right, high) in pairwise(places))


def test_the_legend_counts_and_names_each_curve() -> None:
    words = words_of(drawn(curve("a", (1.0, 4), (1.5, 6)), curve("b[x=1]", (1.1, 2)), curve("none")))
    assert "a: best on 4, a plan on 6 of 8" in words
    assert "b[x=1]: best on 0, a plan on 2 of 8" in words
    assert "none: best on 0, a plan on 0 of 8" in words


def test_curves_differ_without_colours_too() -> None:
    root = drawn(*(curve(f"p{number}", (1.0, number)) for number in range(9)))
    lines = [line.attrib for line in all_of(root, "polyline")][:9]
    assert len({(each["stroke"], "stroke-dasharray" in each) for each in lines}) == 9
    shapes = [
        {
            (child.tag, len(child.attrib.get("points", "").split()))
            for child in group
            if child.tag != f"{SVG}polyline"
        }
        for group in root.iter(f"{SVG}g")
        if group.attrib.get("class") == "curve"
    ]
    assert shapes[0] != shapes[1] != shapes[2]


def test_hundreds_of_steps_on_one_pixel_stay_few() -> None:
    steps = tuple((1 + number / 5000, number + 1) for number in range(5000))
    (places,) = curves_of(drawn(curve("a", *steps), problems=5000))
    assert len(places) < 2200
    assert places[-1][1] == pytest.approx(
        tick(drawn(curve("a", *steps), problems=5000), "100 %", "y") - 4, abs=0.2
    )
