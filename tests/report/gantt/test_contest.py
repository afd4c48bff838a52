"""Plans on one time axis: the same instant is at the same place in every lane, and the bound at its own."""

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from pipebench.report.gantt.contest import SEAM, Contest, PlanTimeline, contests_svg
from pipebench.report.gantt.gantt import Bar, Gantt, GanttRow
from pipebench.report.gantt.svg import WIDTH

SVG = "{http://www.w3.org/2000/svg}"
MS = 1_000_000


def timeline(words: str, until_ms: int, *lanes: tuple[tuple[int, int], ...], kind: str = "F") -> PlanTimeline:
    """lanes: (start, end) in ms of the tasks of each device."""
    rows = tuple(
        GanttRow(f"gpu{device}", tuple(Bar(kind, 0, 0, a * MS, b * MS) for a, b in lane), devices=(device,))
        for device, lane in enumerate(lanes)
    )
    return PlanTimeline(words, Gantt(title="", rows=rows, until_ns=until_ms * MS))


def boxes(root: ET.Element, plan: str) -> list[tuple[float, float]]:
    """Left and right ends of the bars of a plan, as drawn."""
    (group,) = [g for g in root.iter(f"{SVG}g") if g.findtext(f"{SVG}title") == plan]
    found = []
    for path in group.iter(f"{SVG}path"):
        pen = 0.0
        for letter, amount in re.findall(r"([Mmh])(-?[\d.]+)", path.attrib["d"]):
            if letter == "h":
                found.append((pen, pen + float(amount)))
            pen = float(amount) if letter == "M" else pen + float(amount)
    return sorted(found)


SYNC = Contest(
    "sync",
    [timeline("one", 800, ((0, 200), (300, 800)), ((200, 300),)), timeline("two", 1000, ((300, 1000),), kind="B")],
    bound_ns=600 * MS,
)
ASYNC = Contest("async", [timeline("three", 500, ((0, 300), (300, 500)))], bound_ns=400.5 * MS)


def test_the_same_instant_lies_at_the_same_place_in_every_lane_of_every_plan() -> None:
    root = ET.fromstring(contests_svg([SYNC, ASYNC], "all"))
    left = boxes(root, "one")[0][0]
    ms = WIDTH / 1000
    expected = {
        "one": [(0, 200), (200, 300), (300, 800)],
        "two": [(300, 1000)],
        "three": [(0, 300), (300, 500)],
    }
    for plan, times in expected.items():
        for drawn, instants in zip(boxes(root, plan), times, strict=True):
            begin, end = (left + ms * instant for instant in instants)
            assert drawn[0] == pytest.approx(begin, abs=0.11)
            assert end - SEAM - 0.11 <= drawn[1] <= end + 0.11


def test_each_bound_lies_at_its_time_through_the_plans_that_it_is_for_alone() -> None:
    root = ET.fromstring(contests_svg([SYNC, ASYNC], "all"))
    left = boxes(root, "one")[0][0]
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class") == "bound"]
    assert [g.findtext(f"{SVG}title") for g in groups] == ["no plan beats 600 ms", "no plan beats 400 ms"]
    tops = {text.text: float(text.attrib["y"]) for text in root.iter(f"{SVG}text")}
    found = [[line.attrib for line in g.iter(f"{SVG}line")] for g in groups]
    for lines, bound_ms, plans in zip(found, (600, 400.5), (["one", "two"], ["three"]), strict=True):
        for line, plan in zip(lines, plans, strict=True):
            assert (
                float(line["x1"]) == float(line["x2"]) == pytest.approx(left + WIDTH * bound_ms / 1000, abs=0.06)
            )
            assert tops[plan] < float(line["y1"]) < float(line["y2"])
    assert float(found[0][0]["y2"]) < tops["two"]
    assert float(found[0][1]["y2"]) < tops["async"]


def test_a_bound_beyond_all_plans_is_inside_the_picture() -> None:
    root = ET.fromstring(contests_svg([Contest("sync", [timeline("a", 5, ((0, 5),))], 10 * MS)], "one"))
    (bar,) = boxes(root, "a")
    assert bar[1] - bar[0] == pytest.approx(WIDTH / 2 - SEAM, abs=0.1)
    assert ET.fromstring(contests_svg([Contest("sync", [], None)], "none")).tag == f"{SVG}svg"


def test_plans_end_with_their_times_and_every_lane_that_has_room_is_named() -> None:
    words = [each.text for each in ET.fromstring(contests_svg([SYNC], "all")).iter(f"{SVG}text")]
    assert {"800 ms", "1.00 s", "gpu0", "gpu1", "forward", "backward"} <= set(words)
    lanes = tuple(((0, 10),) for _ in range(60))
    many = ET.fromstring(contests_svg([Contest("sync", [timeline("many", 10, *lanes)], None)], "many"))
    labels = [float(t.attrib["y"]) for t in many.iter(f"{SVG}text") if (t.text or "").startswith("gpu")]
    assert len(boxes(many, "many")) == 60
    assert len(labels) >= 12
    assert all(two - one >= 12 for one, two in itertools.pairwise(labels))


def test_tasks_too_short_to_be_seen_are_drawn_together_and_it_is_said() -> None:
    short = tuple((at, at + 1) for at in range(50_000))
    drawn = contests_svg([Contest("sync", [timeline("short", 50_000, short)], None)], "short")
    assert len(drawn) < 5_000
    assert "short; 50,000 tasks too short to be told apart are drawn together" in drawn


def test_stages_that_share_a_device_are_told_apart_and_names_stay_words() -> None:
    whole = timeline("<b>", 10, ((0, 5), (5, 10)))
    (row,) = whole.gantt.rows
    shared = replace(row, bars=(row.bars[0], replace(row.bars[1], stage=3)))
    text = contests_svg(
        [Contest("sync", [replace(whole, gantt=replace(whole.gantt, rows=(shared,)))], None)], "<b>"
    )
    root = ET.fromstring(text)
    assert [each.get("stroke-opacity") for each in root.iter(f"{SVG}path")] == [None, "0.5"]
    assert "<b>" not in text
