"""Schedules drawn on one scale of time."""

import xml.etree.ElementTree as ET

from pipebench.domain.trace import Trace
from pipebench.report.timelines_svg import WIDTH, timelines_svg

SVG = "{http://www.w3.org/2000/svg}"


def trace(total_ns: int, lanes: int = 2) -> Trace:
    """A forward on each lane, then a backward on the first; each a quarter of the whole."""
    quarter = total_ns // 4
    return Trace(
        origin="simulated",
        lanes=tuple((lane,) for lane in range(lanes)),
        lane=(*range(lanes), 0),
        stage=(*range(lanes), 0),
        micro_batch=(7,) * (lanes + 1),
        kinds="F" * lanes + "B",
        start_ns=(*(quarter * lane for lane in range(lanes)), 3 * quarter),
        end_ns=(*(quarter * (lane + 1) for lane in range(lanes)), total_ns),
        total_ns=total_ns,
    )


def boxes(drawn: str) -> list[tuple[str, float, float, str]]:
    """Class, x, width, tooltip of each task."""
    found = []
    for element in ET.fromstring(drawn).iter(f"{SVG}rect"):
        tip = element.find(f"{SVG}title")
        if tip is not None and tip.text is not None and " of stage " in tip.text:
            place = float(element.attrib["x"]), float(element.attrib["width"])
            found.append((element.attrib["class"], *place, tip.text))
    return found


def test_every_task_is_a_box_of_its_length_and_place() -> None:
    drawn = boxes(timelines_svg([("one", trace(400))], "title"))
    assert [(kind, tip) for kind, _, _, tip in drawn] == [
        ("F", "F7 of stage 0"),
        ("F", "F7 of stage 1"),
        ("B", "B7 of stage 0"),
    ]
    assert {width for _, _, width, _ in drawn} == {WIDTH / 4}
    first = drawn[0][1]
    assert [round(x - first, 1) for _, x, _, _ in drawn] == [0.0, WIDTH / 4, 3 * WIDTH / 4]


def test_a_shorter_schedule_is_shorter_on_the_same_scale() -> None:
    drawn = boxes(timelines_svg([("one", trace(400)), ("other", trace(200, lanes=3))], "title"))
    assert [width for _, _, width, _ in drawn] == [WIDTH / 4] * 3 + [WIDTH / 8] * 4


def test_names_are_escaped_and_nothing_is_no_error() -> None:
    assert "a &lt; b" in timelines_svg([("a < b", trace(400))], "title")
    assert ET.fromstring(timelines_svg([], "none")).tag == f"{SVG}svg"
