"""Charts: what is in the file, what is not dropped, nothing on top of anything else."""

import pytest

from pipebench.domain.artefact import Curve, Figure, Panel
from pipebench.report.chart import svg
from tests.report.chart.drawn import all_of, boxes_of, root_of, words_of

ESTIMATE = Curve(label="A: estimate", kind="estimate", colour=1, points=((4.0, 120.0), (8.0, 90.0)))
SCHEDULE = Curve(label="A", colour=1, points=((8.0, 180.0), (12.0, 95.0)), infeasible=(4.0,))
NEVER = Curve(label='B <never> & "so"', colour=2, infeasible=(4.0, 4.0, 8.0))


def panel(*curves: Curve, title: str = "resnet50, P = 4") -> Panel:
    return Panel(title=title, x_label="memory of a device (GB)", y_label="period (ms)", curves=curves)


def figure(*panels: Panel) -> Figure:
    return Figure(title="a figure", panels=panels)


def test_estimates_are_dashed_and_schedules_solid() -> None:
    lines = all_of(root_of(figure(panel(ESTIMATE, SCHEDULE))), "polyline")
    dashed = ["stroke-dasharray" in line.attrib for line in lines]
    assert dashed == [True, False, True, False]  # the legend's samples, then the curves
    assert len({line.attrib["stroke"] for line in lines}) == 1


def test_cells_without_a_schedule_are_drawn_and_counted() -> None:
    root = root_of(figure(panel(SCHEDULE, NEVER), panel(SCHEDULE, title="resnet50, P = 8")))
    crosses = [p for p in all_of(root, "path") if p.attrib.get("class") == "infeasible"]
    assert len(crosses) == 1 + 2 + 1 + 1  # A, B at 4 (twice) and 8, A in the other panel, the legend
    words = words_of(root)
    assert "A (2 infeasible)" in words
    assert 'B <never> & "so" (3 infeasible)' in words
    assert "2" in words  # B has two cells at 4 GB


def test_a_label_with_characters_that_xml_forbids_is_drawn() -> None:
    curve = Curve(label="a\ufffe\x1b\u202eb", colour=1, points=((1.0, 1.0), (2.0, 2.0)))
    assert "a\ufffd\u241b\ufffdb" in words_of(root_of(figure(panel(curve))))


def test_axes_say_what_they_are_and_panels_have_titles() -> None:
    words = words_of(root_of(figure(panel(SCHEDULE), panel(ESTIMATE, title="other"))))
    for expected in ("a figure", "resnet50, P = 4", "other"):
        assert words.count(expected) == 1
    assert words.count("memory of a device (GB)") == words.count("period (ms)") == 2


def test_points_lie_where_the_axes_say() -> None:
    """Values and pixels of the vertical axis are proportional, and a larger value is higher."""
    root = root_of(figure(panel(Curve(label="A", points=((0.0, 0.0), (1.0, 50.0), (2.0, 100.0))))))
    *_, curve = all_of(root, "polyline")
    places = [tuple(map(float, place.split(","))) for place in curve.attrib["points"].split()]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y2 < y1 < y0
    ticks = {e.text: float(e.attrib["y"]) for e in all_of(root, "text") if e.attrib["text-anchor"] == "end"}
    assert ticks["0"] - 4 == pytest.approx(y0, abs=0.2)
    assert ticks["100"] - 4 == pytest.approx(y2, abs=0.2)


@pytest.mark.parametrize("panels", [1, 2, 3, 4, 7])
def test_no_text_lies_on_another_or_outside(panels: int) -> None:
    curves = [
        Curve(
            label=f"PipeDream, memory released (E{n})",
            colour=n,
            points=((3.0, 1e4), (16.0, 5.0)),
            infeasible=(7.0,),
        )
        for n in range(6)
    ]
    root = root_of(figure(*(panel(*curves, title=f"inception_v3, P = {n}, 12 GB/s") for n in range(panels))))
    boxes = boxes_of(root)
    for position, box in enumerate(boxes):
        assert box.left >= 0
        assert box.right <= float(root.attrib["width"])
        assert box.bottom <= float(root.attrib["height"])
        for other in boxes[position + 1 :]:
            assert not box.overlaps(other), (box, other)


def test_many_values_of_x_get_round_ticks_that_do_not_touch() -> None:
    curve = Curve(label="A", points=tuple((float(x), 1.0) for x in range(3, 17)))
    boxes = boxes_of(root_of(figure(panel(curve))))
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[n + 1 :])


@pytest.mark.parametrize(
    "empty",
    [figure(), figure(panel()), figure(panel(NEVER)), figure(panel(Curve(label="one", points=((4.0, 0.0),))))],
    ids=["no panel", "no curve", "nothing feasible", "one point at zero"],
)
def test_little_or_nothing_is_still_a_chart(empty: Figure) -> None:
    root = root_of(empty)
    assert float(root.attrib["width"]) > 0
    assert not [e for e in root.iter() for value in e.attrib.values() if "nan" in value or "inf" in value.split()]


def test_the_same_figure_is_the_same_file() -> None:
    made = figure(panel(ESTIMATE, SCHEDULE, NEVER))
    assert svg(made) == svg(made)
