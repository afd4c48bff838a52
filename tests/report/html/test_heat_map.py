"""The heat map: what it opens with, and what each cell says without its colour."""

import pytest

from pipebench.bench.standings.ratios import TimeRatio
from pipebench.report.html.heat_map import STRONGEST, first_choice, heat_cell, heat_section
from pipebench.report.html.problem_grid import problem_grid
from tests.report.html.grid_rows import grid_rows
from tests.report.rows import row


def ratio(
    mean: float | None,
    both: int = 0,
    first: int = 0,
    second: int = 0,
    neither: int = 0,
    untaken: int = 0,
    unrun: int = 0,
) -> TimeRatio:
    return TimeRatio(mean, both, first, second, neither, untaken, unrun)


@pytest.mark.parametrize(
    ("found", "words", "style", "hint"),
    [
        (ratio(0.5, 2), "0.50", "faster", "A / B 0.50, both have a plan: 2"),
        (ratio(1.414, 3, first=1), "1.41 (3/4)", "slower", "A / B 1.41, both have a plan: 3, only A: 1"),
        (ratio(1.0, 1, untaken=1), "1.00 (1/2)", "faster", "A / B 1.00, both have a plan: 1, n/a: 1"),
        (ratio(None, first=2, neither=1), "A only", "lone", "only A: 2, neither: 1"),
        (ratio(None, second=2), "B only", "lone", "only B: 2"),
        (ratio(None, first=1, second=1), "A or B", "unsolved", "only A: 1, only B: 1"),
        (ratio(None, neither=2), "✕", "unsolved", "neither: 2"),
        (ratio(None, untaken=2), "n/a", "unsolved", "n/a: 2"),
        (ratio(None, unrun=2), "not run", "unsolved", "not run: 2"),
        (ratio(None, untaken=1, unrun=2), "n/a", "unsolved", "n/a: 1, not run: 2"),
        (ratio(1.0, 1, unrun=1), "1.00 (1/2)", "faster", "A / B 1.00, both have a plan: 1, not run: 1"),
        (ratio(None), "", "unsolved", "no such problem"),
    ],
)
def test_a_cell_says_in_words_what_its_colour_says(found: TimeRatio, words: str, style: str, hint: str) -> None:
    cell = heat_cell(found)
    assert (cell.words, cell.style, cell.hint) == (words, style, hint)


def test_the_colour_is_none_at_equal_times_the_same_both_ways_and_full_at_twice_the_time() -> None:
    parts = [heat_cell(ratio(mean, 1)).part for mean in (1.0, 0.8, 1.25, 0.5, 2.0, 0.1, 10.0)]
    assert parts[0] == 0
    assert parts[1] == parts[2]
    assert 0 < parts[1] < STRONGEST
    assert parts[3:] == [STRONGEST] * 4


def test_it_opens_with_the_two_planners_and_the_largest_grid_and_no_yardstick_before_a_planner() -> None:
    rows = [row("y", yardstick=True), *grid_rows()]
    choice = first_choice(problem_grid([each for each in rows if each.workload_id != "w"]))
    assert choice is not None
    assert (choice.regime, choice.first, choice.second) == ("sync", "fast", "slow")
    assert (choice.down.name, choice.across.name) == ("device memory", "model")
    grid = problem_grid([each for each in rows if each.planner == "fast"])
    assert first_choice(grid) is None
    assert heat_section(grid) is None


def test_a_cell_takes_all_problems_that_lie_there_and_no_other() -> None:
    section = heat_section(problem_grid(grid_rows()))
    assert section is not None
    # With a flush on 8 GB resnet50 has two problems, each 4 s / 2 s; resnet101 is not taken by `slow`.
    text = " ".join(section.split())
    assert 'title="A / B 2.00, both have a plan: 2">2.00</td>' in text
    assert 'title="n/a: 2">n/a</td>' in text
    assert 'title="only A: 2">A only</td>' in text


def test_times_are_plain_for_the_script_and_tell_no_plan_from_not_taken_and_not_run() -> None:
    grid = problem_grid(grid_rows())
    plain = grid.plain()
    assert plain["contenders"] == ("fast", "slow")
    assert plain["regimes"] == ("sync", "async")
    assert [axis["name"] for axis in plain["axes"]] == ["model", "device memory", "bandwidth"]
    fast, slow = plain["times"][0]
    assert fast == [10**9] * 2 + [4 * 10**9] * 2 + [10**9] * 2 + [0] * 2 + [4 * 10**9] * 2 + [10**9] * 2
    assert slow == [0] * 2 + [2 * 10**9] * 4 + [None] * 6
    left = problem_grid([each for each in grid_rows() if each.planner == "fast" or each.model == "resnet101"])
    assert left.plain()["times"][0][1] == [-1] * 6 + [None] * 6
    assert plain["problems"][0] == (0, 0, 0)
    assert plain["problems"][-1] == (1, 2, 1)
