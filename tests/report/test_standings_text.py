"""Standings in 80 columns: nothing is cut, and what a figure means stands below it."""

from pipebench.bench.standings import standings
from pipebench.domain.row import Row
from pipebench.report.text.comparisons.standings import print_standings
from tests.bench.standings.made_rows import row
from tests.report.printed import printed


def seven_problems() -> list[Row]:
    return [
        row(name, f"p{i}", value * (1 + i), claimed_s=value, estimated_s=value)
        for i in range(7)
        for name, value in (("madpipe", 1.0), ("graphpipe[beam=4]", 1.1), ("uniform", 2.0))
    ]


def test_the_best_comes_first_with_solved_mean_record_and_search() -> None:
    text = printed(
        print_standings, standings([*seven_problems(), row("madpipe", "p7"), row("uniform", "p7", 1.0)])
    )
    lines = text.splitlines()
    assert lines[0] == "sync: 8 problems, 3 entrants"
    first, second, third = lines[2:5]
    assert first.split() == ["madpipe", "1f1b", "7/8", "1.000", "1.000", "14/0/1", "500", "ms", "75.4", "s"]
    assert second.split()[:6] == ["graphpipe[beam=4]", "1f1b", "7/8", "1.100", "1.100", "7/0/7"]
    assert third.split()[:6] == ["uniform", "1f1b", "8/8", "1.834", "2.000", "1/0/14"]
    assert "PAR2: mean of CPU, unsolved counts 600 s" in " ".join(text.split())
    assert "common: the same over the 7 problems that all with a plan solved" in " ".join(text.split())
    assert "a tie is within 0.1 %" in text
    start = next(number for number, line in enumerate(lines) if line.startswith("  solved: of all problems"))
    below = lines[start : lines.index("", start)]
    assert [line for line in below if not line.startswith("  ")] == []
    assert "graphpipe[beam=4] x 1f1b was asked on 7 of 8 problems" in text


def test_who_was_not_run_has_no_numbers_and_one_problem_no_agreement() -> None:
    rows = [row(name, "p", value, claimed_s=value) for name, value in (("a", 1.0), ("b", 2.0), ("d", 3.0))]
    text = printed(print_standings, standings([*rows, row("c", "p", status="unsupported")]))
    (line,) = [line for line in text.splitlines() if line.startswith("c ")]
    assert line.split() == ["c", "-", *["n/a"] * 6]
    assert "rank agreement" not in text


def test_duels_and_rank_agreement() -> None:
    text = printed(print_standings, standings(seven_problems()))
    duel = next(line for line in text.splitlines() if line.startswith("madpipe x 1f1b") and "uniform" in line)
    assert duel.split()[-3:] == ["0.500", "7/0/0", "0.047"]
    assert "claimed/simulated 1.00 (7 problems)" in " ".join(text.split())


def test_refused_search_times_say_why_and_show_none() -> None:
    text = printed(print_standings, standings([row("a", "p", 1.0, parallel=True), row("b", "p", 1.0)]))
    assert "search times are not compared: 1 of 2 rows ran in parallel" in text
    assert "500 ms" not in text


def test_long_names_and_many_duels_stay_within_80_columns() -> None:
    names = [f"planner-with-a-very-long-name-{i}[option=a,other-option=[b],third={i}]" for i in range(6)]
    rows = [row(name, f"p{i}", 1e4 * (1 + j), search_cpu_s=1e3) for i in range(6) for j, name in enumerate(names)]
    text = printed(print_standings, standings(rows))
    assert max(map(len, text.splitlines())) <= 80
    assert "5 more pairs are in the JSON" in text
    assert "[b]" in text
    assert "6/6" in text
    assert "30/0/0" in text
    assert "…" not in text
