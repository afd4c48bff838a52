"""Mean ratios of two entrants, and performance profiles, against counting by hand."""

import math
from random import Random

import pytest

from pipebench.bench.standings import standings
from pipebench.bench.standings.cells import EntrantCell
from pipebench.bench.standings.profiles import performance_curves
from pipebench.bench.standings.ratios import time_ratio
from pipebench.domain.row import Row
from tests.report.rows import row


def cell(value_ns: int | None, status: str = "ok") -> EntrantCell:
    return EntrantCell(value_ns, status if value_ns is None else "ok", {}, None)  # type: ignore[arg-type]


def test_the_mean_ratio_is_geometric_and_over_what_both_solved() -> None:
    failed, refused = cell(None, "infeasible"), cell(None, "unsupported")
    found = time_ratio([(cell(4), cell(1)), (cell(1), cell(1)), (cell(9), failed), (failed, cell(9)),
                        (failed, failed), (cell(9), refused), (None, cell(9)), (None, refused),
                        (failed, cell(3))])  # fmt: skip
    assert found.ratio == pytest.approx(2.0)
    assert (found.both, found.only_first, found.only_second) == (2, 1, 2)
    assert (found.neither, found.untaken, found.unrun) == (1, 2, 1)
    turned = time_ratio([(cell(1), cell(4)), (cell(1), cell(1))])
    assert turned.ratio == pytest.approx(0.5)


def test_no_problem_that_both_solved_has_no_ratio() -> None:
    assert time_ratio([]).ratio is None
    assert time_ratio([(cell(1), cell(None, "timeout"))]).ratio is None


def random_rows(random: Random) -> list[Row]:
    """Three planners on 20 problems of two regimes; some have no plan, some problems are not taken."""
    found = []
    for number in range(20):
        for regime in ("sync", "async"):
            for planner in ("a", "b", "c"):
                status = random.choice(("ok", "ok", "ok", "infeasible", "unsupported"))
                seconds = random.randint(1, 5) if status == "ok" else None
                fields = {"status": status, "simulated_s": seconds, "regime": regime}
                found.append(row(planner, **fields, problem_id=f"{number} {regime}", workload_id=f"{number}"))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_counts_the_problems_within_each_factor_of_the_best_of_its_regime(seed: int) -> None:
    rows = random_rows(Random(seed))
    for regime in standings(rows).regimes:
        times = {
            (each.planner, each.problem_id): each.simulated_s or math.inf
            for each in rows
            if each.regime == regime.regime
        }
        problems = {problem for _, problem in times}
        assert regime.problems == len(problems) == 20
        for curve in performance_curves(regime):
            mine = curve.entrant.planner
            best = {problem: min(times[other, problem] for other in "abc") for problem in problems}
            for tau in (1.0, 1.25, 4 / 3, 1.5, 2.0, 2.5, 4.0, 5.0, 100.0):
                expected = sum(times[mine, p] <= tau * best[p] * (1 + 1e-12) < math.inf for p in problems)
                counted = max((count for at, count in curve.steps if at <= tau * (1 + 1e-12)), default=0)
                assert counted == expected, (mine, tau)
            assert curve.solved == sum(times[mine, p] < math.inf for p in problems)
            assert curve.best == sum(times[mine, p] == best[p] < math.inf for p in problems)


def test_who_solves_nothing_has_no_step() -> None:
    rows = [row("a", simulated_s=1.0), row("b", status="infeasible", simulated_s=None)]
    (regime,) = standings(rows).regimes
    curves = {curve.entrant.planner: curve for curve in performance_curves(regime)}
    assert (curves["b"].best, curves["b"].solved, curves["b"].steps) == (0, 0, ())
    assert curves["a"].steps == ((1.0, 1),)
