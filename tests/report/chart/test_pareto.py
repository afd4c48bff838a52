"""Quality against search time: the front is what nobody beats, and markers lie where figures say."""

import itertools
import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.report.chart.elements import SMALL_WIDTH
from pipebench.report.chart.pareto import HEAD, HEIGHT, LEFT, RIGHT, QualityPoint, pareto_front, pareto_svg
from tests.report.chart.drawn import SVG, all_of, words_of

SHARES = st.one_of(st.sampled_from([0.25, 0.5, 0.75, 1.0]), st.floats(1e-6, 1.0))
SECONDS = st.one_of(st.sampled_from([0.01, 0.1, 1.0]), st.floats(1e-7, 1e5))
POINTS = st.lists(st.tuples(SHARES, SECONDS), min_size=1, max_size=9).map(
    lambda places: [QualityPoint(f"p{at}", at, share, spent) for at, (share, spent) in enumerate(places)]
)
THREE = [
    QualityPoint("quick", 0, 0.8, 0.02),
    QualityPoint("good", 1, 0.95, 0.5),
    QualityPoint("beaten", 2, 0.9, 0.6),
]


def beats(one: QualityPoint, other: QualityPoint) -> bool:
    """At least as good and as fast, and one of them more so."""
    no_worse = one.share >= other.share and one.search_s <= other.search_s
    return no_worse and (one.share, one.search_s) != (other.share, other.search_s)


@given(POINTS)
def test_the_front_is_all_that_no_other_beats(points: list[QualityPoint]) -> None:
    expected = {each.name for each in points if not any(beats(other, each) for other in points)}
    front = pareto_front(points)
    assert {each.name for each in front} == expected
    assert [each.search_s for each in front] == sorted(each.search_s for each in front)


def corners(root: ET.Element) -> list[tuple[float, float]]:
    (front,) = [each for each in all_of(root, "polyline") if each.get("class") == "front"]
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in front.attrib["points"].split())]


@given(POINTS)
def test_the_line_rises_in_steps_inside_the_plot(points: list[QualityPoint]) -> None:
    places = corners(ET.fromstring(pareto_svg(points, "any")))
    for (x, y), (next_x, next_y) in itertools.pairwise(places):
        assert x == next_x or y == next_y
        assert next_x >= x
        assert next_y <= y
    assert places[-1][0] == SMALL_WIDTH - RIGHT
    for x, y in places:
        assert LEFT - 0.1 <= x <= SMALL_WIDTH - RIGHT + 0.1
        assert HEAD - 0.1 <= y <= HEAD + HEIGHT + 0.1


def test_markers_lie_by_the_power_of_their_time_and_by_their_share() -> None:
    root = ET.fromstring(pareto_svg(THREE, "three"))
    places = corners(root)
    decade = (SMALL_WIDTH - RIGHT - LEFT) / 2  # 10 ms to 1 s
    quick, good = LEFT + decade * math.log10(2), LEFT + decade * math.log10(50)
    assert [x for x, _ in places] == pytest.approx([quick, good, good, SMALL_WIDTH - RIGHT], abs=0.1)
    (_, low), _, (_, high), _ = places
    percent = (low - high) / 15
    assert high - HEAD == pytest.approx(5 * percent, abs=0.2)  # the plot ends at the bound
    assert {"10 ms", "100 ms", "1 s", "100"} <= set(words_of(root))


def test_what_another_plan_beats_is_hollow_and_every_marker_tells_its_figures() -> None:
    root = ET.fromstring(pareto_svg(THREE, "three"))
    hints = {title.text: group for group in all_of(root, "g") for title in group.findall(f"{SVG}title")}
    fills = {
        (words or "").partition(":")[0]: {each.attrib["fill"] for each in group if "fill" in each.attrib}
        for words, group in hints.items()
    }
    assert {name for name, painted in fills.items() if painted == {"#ffffff"}} == {"beaten"}
    assert "good: 95.0 % of the bound, found in 500 ms" in hints
    assert [each for each in words_of(root) if each in {"quick", "good", "beaten"}] == ["good", "beaten", "quick"]
    assert "No other plan is better and found as fast: quick, good." in (all_of(root, "desc")[0].text or "")


def test_long_names_and_names_with_markup_stay_words_inside_the_chart() -> None:
    nasty = "<script>alert(1)</script>" * 5
    text = pareto_svg([QualityPoint(nasty, 0, 0.5, 1e-300), QualityPoint("b", 1, 0.5, 1e9)], nasty)
    root = ET.fromstring(text)
    assert "<script" not in text
    assert len(text) < 40_000
    names = [each for each in words_of(root) if each.startswith("<script") and each != nasty]
    assert names
    assert all(len(each) * 7 < SMALL_WIDTH - LEFT and each.endswith("…") for each in names)
