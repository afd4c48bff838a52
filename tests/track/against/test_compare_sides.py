"""Two sides with made times: what is flagged, what is not, in which order they run."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.report.tracking.reports import against_report
from pipebench.report.tracking.writers import markdown_report
from pipebench.track.against.comparison import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    USUAL_PAIRS,
    Against,
    OtherRow,
    Run,
    TimeSpent,
    compare_sides,
    run_side,
    same_calibration,
)
from pipebench.track.against.installation import Side, Sides
from pipebench.track.rule.statistics import Pairs

SIDES = Sides("mine", Side("v1", Path("s1"), Path("a")), Side("tree", Path("s2"), Path("b")))


def row(time: float | None = 1.0, **fields: Any) -> OtherRow:
    known: dict[str, Any] = {
        "planner": "mine",
        "regime": "sync",
        "problem_id": "p",
        "status": "ok",
        "simulated_s": 0.452374773,
        "counters": {"states": 10},
        "search_samples": [] if time is None else [(time, time)],
        "search_ratio": {} if time is None else {"interpreter": time},
        "search_cpu_s": time,
    }
    return OtherRow(**(known | fields))


class Made:
    """Runs that take a drifting machine's time, the second side slower by a factor. order: the sides that ran."""

    def __init__(self, factor: float = 1.0, noise: float = 0.03, wall_s: float = 0.0, **after: Any) -> None:
        self.order: list[str] = []
        self._draw = random.Random(1)
        self._factor, self._noise, self._wall_s, self._after = factor, noise, wall_s, after

    def __call__(self, side: Side, arguments: Sequence[str], folder: Path, limit_s: float) -> Run:
        del arguments, folder, limit_s
        self.order.append(side.name)
        drift = 1.0 + 0.05 * len(self.order)
        time = drift * self._draw.lognormvariate(0.0, self._noise)
        if side is SIDES.before:
            return Run([row(time)], self._wall_s)
        return Run([row(time * self._factor, **self._after)], self._wall_s)


def compared(made: Made, budget_s: float = 1e6) -> Against:
    return compare_sides(SIDES, (), Path(), budget_s, run=made)


def test_a_fifth_slower_is_flagged_though_the_machine_drifts() -> None:
    found = compared(Made(1.2))
    assert found.worse
    assert found.subjects[0].pairs.answer == "slower"
    assert "+2" in markdown_report(against_report(found))


def test_a_plan_that_is_lost_is_told_with_its_reason() -> None:
    found = compared(Made(status="crashed", reason="ValueError: boom", simulated_s=None, counters={}))
    assert found.worse
    assert "worse: status ok -\\> crashed (ValueError: boom)\n" in markdown_report(against_report(found))


def test_the_same_twice_is_not() -> None:
    found = compared(Made(1.0))
    assert not found.worse
    assert (found.subjects[0].pairs.answer, found.subjects[0].outcome) == ("same", None)


def test_sides_run_in_turns_after_one_run_that_is_not_looked_at() -> None:
    made = Made(noise=0.2)
    found = compared(made)
    assert made.order[:6] == ["v1", "tree", "v1", "tree", "tree", "v1"]
    assert len(made.order) == 2 + 2 * found.subjects[0].pairs.count
    assert USUAL_PAIRS < found.subjects[0].pairs.count <= MOST_PAIRS


def test_quiet_pairs_are_enough_early() -> None:
    quiet = compare_sides(SIDES, (), Path(), 1e6, run=lambda *_: Run([row()], 0.0))
    assert quiet.subjects[0].pairs.count == FEWEST_PAIRS


def test_the_end_of_the_budget_is_said() -> None:
    found = compared(Made(wall_s=1e9), budget_s=1.0)
    assert found.notices == ("the budget of 1 s ended after 1 pair",)
    assert found.subjects[0].pairs.answer == "too few pairs"


def test_a_plan_worse_by_a_millionth_is_flagged() -> None:
    found = compared(Made(simulated_s=0.452375225))
    assert found.worse
    assert found.subjects[0].outcome == "worse"
    assert "452,374,773 ns -\\> 452,375,225 ns (+0.999 ppm)" in markdown_report(against_report(found))


def test_less_work_is_better_and_no_failure() -> None:
    found = compared(Made(counters={"states": 9}))
    assert (found.worse, found.subjects[0].outcome) == (False, "better")


def test_another_problem_is_said_and_not_compared() -> None:
    found = compared(Made(problem_id="q", simulated_s=9.0))
    assert found.subjects[0].outcome is None
    assert "problem itself is another" in found.subjects[0].notice


def test_a_planner_that_one_side_lacks_is_said() -> None:
    found = compared(Made(planner="renamed"))
    assert [each.notice for each in found.subjects] == ["only before", "only after"]


@pytest.mark.parametrize("fields", [{"search_samples": []}, {"parallel": True}])
def test_cold_searches_and_those_beside_others_are_not_timed(fields: dict[str, Any]) -> None:
    assert compared(Made(**fields)).subjects[0].pairs.count == 0


def test_nothing_ran() -> None:
    with pytest.raises(PipebenchError, match="v1: nothing ran"):
        compare_sides(SIDES, (), Path(), 1.0, run=lambda *_: Run([], 0.0))


def test_other_calibrations_are_not_divided_by(tmp_path: Path) -> None:
    folder = tmp_path / "pipebench" / "bench" / "searches"
    folder.mkdir(parents=True)
    (folder / "calibration.py").write_text("another")
    sides = Sides("mine", Side("v1", tmp_path, Path("a")), SIDES.after)
    assert same_calibration(SIDES)
    assert not same_calibration(sides)


@pytest.mark.parametrize(
    ("made", "verdict", "code"),
    [
        (Made(1.0), "no worse", ExitCode.OK),
        (Made(1.2), "worse", ExitCode.CONDITION_FAILED),
        (Made(simulated_s=0.5), "worse", ExitCode.CONDITION_FAILED),
        (Made(noise=3.0), "inconclusive", ExitCode.INCONCLUSIVE),
        (Made(parallel=True), "inconclusive", ExitCode.INCONCLUSIVE),
        (Made(planner="renamed"), "inconclusive", ExitCode.INCONCLUSIVE),
        (Made(problem_id="q"), "inconclusive", ExitCode.INCONCLUSIVE),
    ],
)
def test_what_is_not_known_is_no_pass(made: Made, verdict: str, code: ExitCode) -> None:
    found = compared(made)
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert bool(found.subjects[0].unknown) == (verdict == "inconclusive")
    assert ("Inconclusive" in markdown_report(against_report(found))) == (verdict == "inconclusive")


def test_a_planner_without_a_plan_on_both_sides_is_judged_by_that() -> None:
    failed = row(None, status="infeasible", simulated_s=None)
    found = compare_sides(SIDES, (), Path(), 1e6, run=lambda *_: Run([failed, row()], 0.0))
    assert found.verdict == "no worse"


def test_a_new_planner_holds_nothing_up() -> None:
    def run(side: Side, *_: object) -> Run:
        return Run([row()] if side is SIDES.before else [row(), row(planner="new")], 0.0)

    assert compare_sides(SIDES, (), Path(), 1e6, run=run).verdict == "no worse"


def test_it_says_how_many_pairs_would_tell() -> None:
    found = compared(Made(noise=3.0)).subjects[0]
    assert found.pairs.count == MOST_PAIRS
    assert found.pairs.enough is not None
    assert found.pairs.enough > MOST_PAIRS
    assert found.unknown == f"60 pairs did not tell +10%; some {found.pairs.enough} pairs would"
    few = compared(Made(wall_s=1e9), budget_s=1.0).subjects[0]
    assert few.unknown == "1 pair did not tell +10%; some 8 pairs would"


def test_as_many_as_it_says_are_about_enough() -> None:
    """Twice the room is four times the pairs: intervals shrink by the root of their number."""
    pairs = Pairs(answer="same", count=10, change=0.0, low=1.1**-2 - 1, high=1.1**2 - 1)
    assert (pairs.enough, pairs.excludes_a_change) == (40, False)
    assert Pairs(answer="same", count=10, change=0.0, low=-0.05, high=0.09).enough is None
    assert Pairs(answer="too few pairs", count=3).enough == 8
    assert Pairs(answer="same", count=20, change=0.08, low=0.05, high=0.12).enough == 21  # never what it has
    assert Pairs(answer="too few pairs", count=0).enough is None


def test_the_budget_ends_a_run_on_its_way() -> None:
    """What a run waits for others counts, too."""
    limits: list[float] = []

    def run(side: Side, arguments: Sequence[str], folder: Path, limit_s: float) -> Run:
        del side, arguments, folder
        limits.append(limit_s)
        if len(limits) == 6:
            raise TimeSpent
        return Run([row()], 0.0)

    found = compare_sides(SIDES, (), Path(), 100.0, run=run)
    assert found.notices == ("the budget of 100 s ended after 1 pair",)
    assert found.verdict == "inconclusive"
    assert limits == sorted(limits, reverse=True)
    assert limits[0] <= 100.0


def test_a_run_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(TimeSpent):
        run_side(SIDES.before, ("--planners", "uniform"), Path(), 0.01)
