"""The contest: what it draws, and its figures."""

import pytest

from tests.contest.problems import drawn
from tests.contest.standing import Row, standing, table


def row(problem: str, best_s: float | None, **planners_s: float) -> Row:
    return Row(problem, 300.0, 60.0, best_s, "local-search", planners_s)


def test_the_draw_is_fixed_and_from_all_groups() -> None:
    chosen = drawn(30, 0)
    assert [each.label for each in chosen] == [each.label for each in drawn(30, 0)]
    assert len({each.label for each in chosen}) == 30
    assert {each.group for each in chosen} == {"quick", "chains", "branches", "language models"}
    assert [each.label for each in chosen] != [each.label for each in drawn(30, 1)]
    assert drawn(7, 0) == chosen[:7]


def test_figures_by_hand() -> None:
    rows = [
        row("faster", 1.0, a=2.0, b=4.0),
        row("faster by less", 4.0, a=4.5),
        row("equal", 3.0, a=3.0),
        row("slower", 1.02, a=1.0),
        row("alone", 1.0),
        row("nobody", None),
    ]
    found = standing(rows)
    assert (found.problems, found.alone, found.no_worse, found.better) == (4, 1, 3, 2)
    assert found.worst == pytest.approx(0.02)
    assert found.gain == pytest.approx((2 * 1.125) ** 0.5)
    assert standing([row("lost", None, a=1.0)]).worst == float("inf")


def test_the_table_names_the_fastest() -> None:
    text = table([row("one", 1.0, b=2.0, a=2.0), row("two", 1.5)])
    assert "| one | a | 2 | local-search | 1 | 0.5000 |" in text
    assert "| two | - | - | local-search | 1.5 | - |" in text
    assert "with 60 s against 300 s of each planner: no worse in 1 of 1" in text
