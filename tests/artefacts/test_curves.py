"""Curves: a point where there is a figure, a mark where there is no plan, nothing where it was not run."""

from pipebench.artefacts.curves import curve, with_marks, with_points
from pipebench.artefacts.result_grid import result_grid
from tests.artefacts.results import FAST, SLOW, Place, result


def test_points_and_marks_of_a_contender() -> None:
    rows = [
        result(FAST, {"network": "a", "devices": 2.0}, throughput=10.0),
        result(FAST, {"network": "a", "devices": 4.0}, "infeasible"),
        result(FAST, {"network": "a", "devices": 8.0}, "timeout"),
        result(SLOW, {"network": "a", "devices": 16.0}, throughput=1.0),
    ]
    grid = result_grid(rows, Place)
    line = curve(
        FAST,
        grid.places(),
        lambda place: place.devices,
        lambda place: grid.rate(place, FAST),
        lambda place: grid.has_no_plan(place, FAST),
    )
    assert (line.label, line.colour, line.kind) == ("the fast one", 3, "schedule")
    assert (line.points, line.infeasible) == (((2.0, 10.0),), (4.0,))


def test_an_estimate_has_its_own_label_and_the_contender_s_colour() -> None:
    line = curve(FAST, [Place("a", 2)], lambda _: 2, lambda _: 1.0, label="expected", kind="estimate")
    assert (line.label, line.colour, line.kind, line.infeasible) == ("expected", 3, "estimate", ())


def test_curves_without_anything_to_draw_are_left_out() -> None:
    full = curve(FAST, [Place("a", 2)], lambda _: 2, lambda _: 1.0)
    mark = curve(FAST, [Place("a", 2)], lambda _: 2, lambda _: None, lambda _: True)
    empty = curve(FAST, [Place("a", 2)], lambda _: 2, lambda _: None)
    assert with_points([full, mark, empty]) == (full,)
    assert with_marks([full, mark, empty]) == (full, mark)
