"""Rows by place: every look-up is what a walk over the results says."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.artefacts.result_grid import NO_PLAN, Contender, result_grid, simulated_s, troubles
from pipebench.domain.artefact import Result
from tests.artefacts.results import FAST, SLOW, Place, result

STATUSES = ("ok", "ok", "ok", "infeasible", "invalid_plan", "unsupported", "timeout", "crashed")


@st.composite
def all_results(draw: st.DrawFn) -> list[Result]:
    """Some of the rows of two contenders on a small grid, in any order."""
    keys = [(network, devices, who) for network in "ab" for devices in (2, 4, 8) for who in (FAST, SLOW)]
    made = []
    for network, devices, who in draw(st.lists(st.sampled_from(keys), unique=True)):
        status = draw(st.sampled_from(STATUSES))
        rate = draw(st.sampled_from((None, 0.0, 1.0, 2.0, 5.0))) if status == "ok" else None
        at: dict[str, str | float] = {"network": network, "devices": float(devices)}
        made.append(result(who, at, status, throughput=rate))
    return made


def rate_of(results: list[Result], place: Place, who: Contender) -> float | None:
    """By a walk over the results."""
    for each in results:
        at = each.cell.at
        if (at["network"], at["devices"], at["series"]) == (place.network, place.devices, who.key):
            return each.row.throughput if each.row.status == "ok" else None
    return None


@given(all_results())
def test_look_ups_are_those_of_a_walk_over_the_results(results: list[Result]) -> None:
    grid = result_grid(results, Place)
    assert grid.places() == list(
        dict.fromkeys(Place(str(each.cell.at["network"]), int(each.cell.at["devices"])) for each in results)
    )
    ratios = {}
    for place in grid.places():
        fast, slow = (rate_of(results, place, who) for who in (FAST, SLOW))
        assert (grid.rate(place, FAST), grid.rate(place, SLOW)) == (fast, slow)
        if fast and slow:
            ratios[place] = fast / slow
        assert grid.lacks(place, FAST, lambda row: row.throughput) == (
            grid.row(place, FAST) is not None and fast is None
        )
    assert grid.ratios(FAST, SLOW) == ratios
    assert {place for place, _, _ in grid.both(FAST, SLOW)} >= set(ratios)
    assert [row for _, row in grid.rows(FAST)] == [e.row for e in results if e.cell.at["series"] == FAST.key]
    best = grid.best_place(FAST, grid.places())
    assert (best is None) == (not any(grid.rate(place, FAST) for place in grid.places()))
    assert best is None or grid.rate(best, FAST) == max(grid.rate(place, FAST) or 0 for place in grid.places())


@given(all_results(), st.booleans())
def test_every_row_is_a_plan_or_no_plan_or_trouble(results: list[Result], skip: bool) -> None:
    grid = result_grid(results, Place, skip_trouble=skip)
    kinds = {
        kind: sum(test(place, who) for place in grid.places() for who in (FAST, SLOW))
        for kind, test in (("plan", lambda p, w: grid.plan_row(p, w) is not None), ("none", grid.has_no_plan))
    }
    lost = sum(int(line.partition(" x ")[0]) for line in grid.lost)
    assert kinds["plan"] + kinds["none"] + lost == len(results)
    kept = len(list(grid.rows(FAST))) + len(list(grid.rows(SLOW)))
    assert kept == len(results) - (lost if skip else 0)


def test_places_are_chosen_by_their_axes_in_the_order_of_the_cells() -> None:
    at = [("b", 8.0), ("a", 2.0), ("b", 2.0), ("a", 8.0)]
    grid = result_grid([result(FAST, {"network": n, "devices": d}) for n, d in at], Place)
    assert grid.values("network") == ["b", "a"]
    assert grid.places(network="a") == [Place("a", 2), Place("a", 8)]
    assert grid.values("devices", network="b") == [8, 2]
    assert sorted(grid.places(devices=2)) == [Place("a", 2), Place("b", 2)]


def test_an_axis_has_the_type_of_the_place_and_may_have_a_default() -> None:
    at: dict[str, str | float] = {"network": "a", "devices": 4.0, "other": 1.0}
    (place,) = result_grid([result(FAST, at | {"memory_gb": 16})], Place).places()
    assert (place, type(place.devices), type(place.memory_gb)) == (Place("a", 4, 16.0), int, float)
    assert result_grid([result(FAST, at)], Place).places() == [Place("a", 4)]
    wrong_places: list[dict[str, str | float]] = [{"network": "a"}, {"network": "a", "devices": 4.5}]
    for wrong in wrong_places:
        with pytest.raises(msgspec.ValidationError, match="devices"):
            result_grid([result(FAST, wrong)], Place)


def test_what_counts_as_no_plan_is_the_figure_s() -> None:
    at: dict[str, str | float] = {"network": "a", "devices": 2.0}
    refusal = [result(FAST, at, "unsupported")]
    plain, more = result_grid(refusal, Place), result_grid(refusal, Place, no_plan=(*NO_PLAN, "unsupported"))
    (place,) = plain.places()
    assert (plain.has_no_plan(place, FAST), plain.lost) == (False, ("1 x fast[x=1]: unsupported: it did not",))
    assert (more.has_no_plan(place, FAST), more.lost) == (True, ())
    assert not more.has_no_plan(place, SLOW)


def test_troubles_of_one_kind_are_one_line() -> None:
    rows = [result(FAST, {"network": "a", "devices": float(n)}, "timeout") for n in (2, 4)]
    rows.append(result(SLOW, {"network": "a", "devices": 2.0}, "crashed"))
    assert troubles(rows) == ("2 x fast[x=1]: timeout: it did not", "1 x slow: crashed: it did not")


def test_a_ratio_of_any_figure() -> None:
    at: dict[str, str | float] = {"network": "a", "devices": 2.0}
    grid = result_grid([result(FAST, at, simulated_s=2.0), result(SLOW, at, simulated_s=3.0)], Place)
    assert grid.ratios(SLOW, FAST, simulated_s) == {Place("a", 2): 1.5}
    assert grid.ratios(SLOW, FAST) == {}
