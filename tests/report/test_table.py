"""The comparison table: headings, blocks, notices once, failures, 80 columns."""

import pytest

from pipebench.domain.row import Row
from pipebench.report.text.comparison import heading, print_rows
from tests.report.printed import printed
from tests.report.rows import row

LONG = "tensors that skip stages are passed on from stage to stage"


def lines_of(*rows: Row) -> list[str]:
    return [line.rstrip() for line in printed(print_rows, rows).splitlines()]


@pytest.mark.parametrize(
    ("model", "profile", "shown"),
    [
        ("mmt", "mmt", "mmt on"),
        ("mmt[branches=8]", "mmt", "mmt[branches=8] on"),
        ("resnet50", "measured", "measured of resnet50 on"),
    ],
)
def test_the_heading_names_the_model_where_the_profile_does_not(model: str, profile: str, shown: str) -> None:
    expected = f"sync: {shown} 8 x summit, mini-batch 128, bound 500 ms (work)"
    assert heading(row("a", model=model, profile=profile)) == expected


def test_rows_of_one_problem_stand_together_whatever_their_order() -> None:
    lines = lines_of(
        row("a", regime="async", problem_id="q"), row("b"), row("c", problem_id="r"), row("d"),
        row("e", regime="async", problem_id="q"),
    )  # fmt: skip
    assert [line.split()[0] for line in lines if line.split() and line.split()[-1] in ("ok", "(work)")] == [
        "sync:", "b", "d", "sync:", "c", "async:", "a", "e",
    ]  # fmt: skip


def test_a_notice_is_printed_once_with_whom_it_concerns() -> None:
    lines = lines_of(
        row("madpipe", notices=(LONG, "only contiguous")),
        row("uniform"),
        row("madpipe", problem_id="q", notices=(LONG,)),
        row("exact", problem_id="q", notices=(LONG,)),
        row("uniform", problem_id="r"),
    )
    assert lines[-2:] == [f"1  madpipe, exact: {LONG}", "2  madpipe: only contiguous"]
    assert "\n".join(lines).count(LONG) == 1
    marks = [(line.split()[0], line.partition(" ok")[2].strip()) for line in lines if " ok" in line]
    assert marks == [("madpipe", "1,2"), ("uniform", ""), ("madpipe", "1"), ("exact", "1"), ("uniform", "")]
    assert [line.endswith("notes") for line in lines if line.startswith("planner")] == [True, True, False]


def test_an_adapted_planner_is_marked_and_nothing_wraps_at_80_columns() -> None:
    lines = lines_of(
        row("contiguous-exact", adapted=True, verdict="valid", gap=1.343, notices=(LONG,)),
        row("graphpipe", status="invalid_plan", reason="no memory", throughput=None, fit="does not fit"),
    )
    (adapted,) = [line for line in lines if line.startswith("contiguous-exact")]
    assert adapted.endswith(" fits 50.0 ms ok           1,2")
    assert "adapted" in lines[-2]
    assert max(len(line) for line in lines[:4]) <= 80
    assert len(lines) == 8


def test_the_claim_stands_beside_what_the_suite_finds_where_there_is_room() -> None:
    claim = {"mini_batch": 64, "claimed_s": 0.5, "throughput": 111.0}
    roomy = lines_of(row("a", **claim), row("b", claimed_s=None))
    assert roomy[1].split()[2:4] == ["claimed", "samples/s"]
    assert [line.split()[2:4] for line in roomy[2:4]] == [["128", "111"], ["-", "140"]]
    narrow = lines_of(row("a-planner-with-a-long-name[of=which,more=is-said]", **claim))
    assert "claimed" not in narrow[1]


def test_planners_that_fail_for_the_same_reason_share_a_line() -> None:
    failed = {"status": "infeasible", "reason": "it needs 25378230784 bytes"}
    lines = lines_of(row("a", **failed), row("b", status="crashed", reason="boom"), row("c", **failed))
    assert [line for line in lines if line.startswith("  ")] == ["  a, c: it needs 25.4 GB", "  b: boom"]


@pytest.mark.parametrize(("measured", "tau"), [((3.0, 2.0, 1.0), "-1.00"), ((1.0, 3.0, 2.0), "0.33")])
def test_rank_agreement_stands_under_a_block_of_three_measured_plans(
    measured: tuple[float, ...], tau: str
) -> None:
    rows = [row(name, simulated_s=1.0 + n, measured_s=measured[n]) for n, name in enumerate("abc")]
    line = f"  rank agreement of simulated and measured times (Kendall's tau-b): {tau}, 3 plans"
    assert line in lines_of(*rows)
    assert not any("rank agreement" in each for each in lines_of(*rows[:2]))
    assert not any("rank agreement" in each for each in lines_of(*(row(name) for name in "abc")))


def test_what_is_left_with_the_measured_times_stands_under_a_block() -> None:
    rows = [
        row("a", simulated_s=1.0, measured_s=2.0, replayed_s=1.9),
        row("b", simulated_s=1.0, measured_s=1.0, replayed_s=1.1),
        row("c", simulated_s=1.0),
    ]
    start, end = "  with the measured times of tasks the simulation is ", " off (messages, all-reduces, idle time)"
    assert f"{start}-5.0 % to 10.0 %{end}" in lines_of(*rows)
    assert f"{start}-5.0 %{end}" in lines_of(rows[0], rows[2])
    assert not any(line.startswith(start) for line in lines_of(rows[2]))
