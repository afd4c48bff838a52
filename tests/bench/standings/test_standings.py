"""Standings of small sets of rows, worked out by hand."""

import json
import math
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.standings import (
    Entrant,
    RegimeStandings,
    Standing,
    best_rows,
    fastest_rows,
    relative,
    standings,
)
from pipebench.bench.standings.cells import grid
from pipebench.bench.standings.table import duels, records
from pipebench.domain.row import Row
from tests.bench.standings.made_rows import row


def only(rows: Sequence[Row], **options: float) -> RegimeStandings:
    (regime,) = standings(rows, **options).regimes
    return regime


def of(regime: RegimeStandings, planner: str) -> Standing:
    (found,) = [each for each in regime.standings if each.entrant.planner == planner]
    return found


def test_ratio_to_best_and_gap_of_each_row() -> None:
    rows = [row("a", "p", 1.0), row("b", "p", 2.0), row("c", "p"), row("a", "q", 3.0, bound_s=None)]
    found = relative(rows)
    assert [each.ratio for each in found] == [1.0, 2.0, None, 1.0]
    assert [each.gap for each in found] == [1.0, 3.0, None, None]


def test_the_value_is_simulated_else_estimated_and_never_claimed_or_measured() -> None:
    rows = [
        row("a", "p", 2.0, estimated_s=1.0, claimed_s=0.1, measured_s=0.1),
        row("b", "p", 1.0, simulated_s=None, estimated_s=4.0),
    ]
    assert [each.ratio for each in relative(rows)] == [1.0, 2.0]
    assert any("estimated values stand beside" in notice for notice in only(rows).notices)


def test_means_are_over_what_is_solved_and_par2_joins_what_is_not() -> None:
    rows = [
        row("a", "p", 1.0, search_cpu_s=0.1),
        row("a", "q", 4.0, search_cpu_s=0.2),
        row("a", "r", 4.0, search_cpu_s=0.3),
        row("b", "p", 3.0, search_cpu_s=0.5),
        row("b", "q"),
        row("b", "r", 8.0, search_cpu_s=0.5),
        row("c", "p", status="unsupported"),
        row("c", "q", 2.0),
        row("c", "r", 2.0),
    ]
    regime = only(rows, shift_s=0.0, timeout_s=2.0)
    assert (regime.problems, regime.common, regime.unsolved_search_s) == (3, 1, 4.0)
    a, b, c = (of(regime, name) for name in "abc")
    assert [(each.solved, each.asked, each.unsupported) for each in (a, b, c)] == [(3, 3, 0), (2, 3, 0), (2, 2, 1)]
    assert a.ratio == pytest.approx((1 * 2 * 2) ** (1 / 3))
    assert b.ratio == pytest.approx(math.sqrt(3 * 4))
    assert c.ratio == 1.0
    assert [each.common_ratio for each in (a, b, c)] == [pytest.approx(ratio) for ratio in (2.0, 4.0, 1.0)]
    assert b.search_s == pytest.approx(0.5)
    assert b.par2_s == pytest.approx((0.5 + 4.0 + 0.5) / 3)
    assert of(only(rows), "b").par2_s == pytest.approx((0.5 + 600 + 0.5) / 3)
    assert [each.entrant.planner for each in regime.standings] == ["c", "a", "b"]


@given(st.lists(st.tuples(st.floats(1, 50), st.floats(1, 50)), min_size=1, max_size=6), st.integers(0, 5))
def test_a_planner_cannot_better_its_place_by_failing(values: list[tuple[float, float]], lost: int) -> None:
    problems = [f"p{i}" for i in range(len(values))]
    rows = [
        row(name, p, v)
        for p, pair in zip(problems, values, strict=True)
        for name, v in zip("ab", pair, strict=True)
    ]
    position = 2 * (lost % len(values))
    failed = [*rows[:position], row("a", rows[position].problem_id), *rows[position + 1 :]]
    before, after = only(rows), only(failed)
    assert of(after, "a").wins <= of(before, "a").wins
    assert of(after, "a").losses >= of(before, "a").losses
    assert of(after, "a").solved == of(before, "a").solved - 1
    assert (of(after, "a").par2_s or 0) > (of(before, "a").par2_s or 0)
    place = [[each.entrant.planner for each in regime.standings].index("a") for regime in (before, after)]
    assert place[1] >= place[0]


def test_wins_ties_and_losses_with_the_tolerance() -> None:
    rows = [
        row("a", "p", 1.0), row("b", "p", 1.0009),
        row("a", "q", 1.0), row("b", "q", 1.0011),
        row("a", "r", 1.2), row("b", "r", 1.0),
        row("a", "s", 1.2), row("b", "s"),
        row("a", "t"), row("b", "t"),
        row("a", "u", 1.0),
    ]  # fmt: skip
    regime = only(rows)
    (duel,) = regime.duels
    assert (duel.wins, duel.ties, duel.losses, duel.contests, duel.both_solved) == (2, 1, 1, 4, 3)
    assert duel.median_ratio == pytest.approx(1 / 1.0009)
    assert duel.p is None
    assert duel.p_holm is None
    a, b = of(regime, "a"), of(regime, "b")
    assert (a.wins, a.ties, a.losses) == (2, 1, 1)
    assert (b.wins, b.ties, b.losses) == (1, 1, 2)
    assert "b x 1f1b was asked on 5 of 6 problems; its means are over those" in regime.notices
    assert only(rows, tie=0.0).duels[0].ties == 0


def test_a_test_from_six_contests_on_with_the_effect_beside_it() -> None:
    rows = [row(name, f"p{i}", v) for i in range(6) for name, v in (("a", 1.0), ("b", 2.0 + i), ("c", 1.0))]
    duels = {(d.first.planner, d.second.planner): d for d in only(rows).duels}
    assert duels["a", "b"].p == pytest.approx(2 / 64)
    assert duels["a", "b"].p_holm == pytest.approx(3 * 2 / 64)
    assert duels["a", "b"].median_ratio == pytest.approx((1 / 4 + 1 / 5) / 2)
    assert duels["a", "c"].p == 1.0
    assert duels["a", "c"].median_ratio == 1.0


def test_regimes_are_kept_apart() -> None:
    rows = [
        row("a", "p", 5.0),
        row("a", "p-async", 1.0, regime="async", scheduler="1f1b*"),
        row("b", "p-async", 2.0, regime="async"),
    ]
    sync, other = standings(rows).regimes
    assert (sync.regime, sync.problems, len(sync.standings)) == ("sync", 1, 1)
    assert of(sync, "a").ratio == 1.0
    assert of(other, "b").ratio == 2.0
    assert standings([]).regimes == ()


def test_a_failure_before_the_schedule_counts_against_the_schedulers_of_the_planner() -> None:
    rows = [row("a", "p", 1.0), row("a", "q"), row("b", "q"), row("b", "p", 1.0, adapted=True)]
    regime = only(rows)
    assert {(str(s.entrant), s.solved, s.asked) for s in regime.standings} == {
        ("a x 1f1b", 1, 2),
        ("b", 0, 1),
        ("b (adapted) x 1f1b", 1, 1),
    }


def test_a_failure_without_a_scheduler_is_never_laid_on_one_that_ran_and_never_lost() -> None:
    regime = only([row("a", "p", 1.0), row("a", "p")])
    assert {(str(s.entrant), s.solved, s.asked) for s in regime.standings} == {("a x 1f1b", 1, 1), ("a", 0, 1)}


def test_half_of_the_repetitions_failing_is_not_solved() -> None:
    once = [row("a", "p", 1.0, repetition=0), row("a", "p", repetition=1)]
    assert of(only(once), "a").solved == 0
    assert of(only([*once, row("a", "p", 2.0, repetition=2)]), "a").ratio == 2.0
    assert of(only([row("a", "p", 1.0), row("a", "p", None, status="skipped", repetition=1)]), "a").asked == 1


def test_what_is_not_supported_was_not_run() -> None:
    rows = [row("a", "p", 1.0), row("b", "p", status="unsupported")]
    regime = only(rows)
    b = of(regime, "b")
    assert (b.asked, b.solved, b.unsupported, b.ratio, b.par2_s) == (0, 0, 1, None, None)
    assert (b.wins, b.ties, b.losses) == (0, 0, 0)
    assert regime.duels == ()


def test_the_best_row_is_the_fastest_of_its_problem() -> None:
    rows = [row("a", "p", 2.0), row("b", "p", 1.0, claimed_s=0.5), row("c", "p"), row("a", "q", 3.0)]
    (best,) = best_rows(rows)
    assert (best.planner, best.simulated_s, best.claimed_s, best.search_cpu_s) == ("best", 1.0, None, None)
    assert best.notices == ("it is that of b",)
    assert fastest_rows(rows) == {"p": rows[1]}
    assert best_rows([row("a", "p"), row("b", "p")]) == ()


def test_where_several_met_in_one_regime_the_other_has_a_best_row_too() -> None:
    rows = [row("a", "p", 2.0), row("b", "p", 1.0), row("a", "q", 3.0, workload_id="p", regime="async")]
    assert fastest_rows(rows) == {"p": rows[1], "q": rows[2]}
    assert fastest_rows([rows[0], rows[2]]) == {}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"parallel": True}, "in parallel"),
        ({"environment": {"cpu": "Other CPU"}}, "cpu is 'Other CPU' and 'That CPU'"),
        ({"environment": {"cpu": "That CPU", "numpy": "9"}}, "numpy is 9 and 'not recorded'"),
    ],
)
def test_search_times_are_refused_quality_is_not(changed: dict[str, object], reason: str) -> None:
    here = {"cpu": "That CPU", "load": "0.1"}
    rows = [row("a", "p", 1.0, environment=here), row("b", "p", 2.0, **({"environment": here} | changed))]
    regime = only(rows)
    assert reason in regime.search_refused
    assert all(s.search_s is None and s.par2_s is None for s in regime.standings)
    assert of(regime, "b").ratio == 2.0


def test_load_and_seed_do_not_make_another_machine() -> None:
    rows = [row(name, "p", 1.0, environment={"cpu": "x", "load": name, "seed": name}) for name in "ab"]
    assert only(rows).search_refused == ""


def test_rungs_that_rank_alike_and_in_reverse() -> None:
    rows = [
        row(name, problem, value, claimed_s=claimed, estimated_s=value)
        for problem, claims in (("p", (1.0, 2.0, 3.0)), ("q", (3.0, 2.0, 1.0)), ("r", (2.0, 2.0, 2.0)))
        for name, value, claimed in zip("abc", (1.0, 2.0, 3.0), claims, strict=True)
    ]
    found = {(a.lower, a.upper): a for a in only(rows).agreements}
    assert set(found) == {("claimed", "estimated"), ("claimed", "simulated"), ("estimated", "simulated")}
    assert found["estimated", "simulated"].mean_tau == 1.0
    claimed = found["claimed", "simulated"]
    assert [(p.problem_id, p.entrants, p.tau) for p in claimed.problems] == [
        ("p", 3, 1),
        ("q", 3, -1),
        ("r", 3, None),
    ]
    assert (claimed.mean_tau, claimed.counted) == (0.0, 2)
    assert only(rows[:2]).agreements == ()


def test_best_known_names_all_who_reach_it() -> None:
    rows = [row("a", "p", 2.0), row("b", "p", 2.0), row("c", "p", 3.0), row("a", "q")]
    p, q = only(rows).best
    assert (p.value_s, p.gap) == (2.0, 3.0)
    assert p.entrants == tuple(Entrant(planner=name, scheduler="1f1b") for name in "ab")
    assert (q.value_s, q.gap, q.entrants) == (None, None, ())


def test_json_has_no_infinities() -> None:
    made = standings([row("a", "p", 1.0), row("b", "p"), row("c", "p", 0.0)])
    json.dumps(msgspec.to_builtins(made), allow_nan=False)


def test_a_yardstick_counts_in_nothing() -> None:
    rows = [row(name, problem, value) for problem in "pq" for name, value in (("a", 2.0), ("b", 3.0))]
    beside = [*rows, *(row("y", problem, 1.0, yardstick=True) for problem in "pq")]
    assert only(beside) == only(rows)
    assert best_rows(beside) == best_rows(rows)


@given(
    st.lists(st.lists(st.none() | st.sampled_from([0.0, 1e-9, 1.0, 1.0005, 1.002, 3.0]), max_size=3), max_size=5),
    st.sampled_from([0.0, 1e-3, 0.5]),
)
def test_records_are_the_sums_of_duels(values: list[list[float | None]], tie: float) -> None:
    rows = [row(f"e{e}", f"p{p}", value) for e, each in enumerate(values) for p, value in enumerate(each)]
    cells = grid(rows)
    expected = dict.fromkeys(cells, (0, 0, 0))
    for duel in duels(cells, tie):
        for entrant, met in (
            (duel.first, (duel.wins, duel.ties, duel.losses)),
            (duel.second, (duel.losses, duel.ties, duel.wins)),
        ):
            one = expected[entrant]
            expected[entrant] = (one[0] + met[0], one[1] + met[1], one[2] + met[2])
    assert records(cells, tie) == expected
