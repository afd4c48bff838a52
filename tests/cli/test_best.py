"""`pipebench plan best` as a user runs it: planners, search, gap, and what it refuses."""

import re

import pytest

from pipebench.bench import best
from tests.cli.command_line import CommandLine

WHERE = ("--profile", "tiny-mmt-cpu", "--devices", "2", "--mini-batch", "16", "--memory", "4GB")


def test_progress_shows_plan_bound_and_gap_and_the_end_says_why(
    pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best, "MOST_STALL", 100)
    monkeypatch.setattr(best, "STARTS", 1)
    done = pipebench("plan", "best", *WHERE, "--timeout", "12", "--gap", "0")
    assert done.code == 0
    assert "planning with layout" in done.err
    assert "planning with local-search" in done.err
    shown = re.findall(
        r"^  (\S.*): best (\S+) samples/s \(.* s\), bound .* s, gap (\S+) %$", done.err, re.MULTILINE
    )
    assert shown, done.err
    gaps = [float(gap) for _, _, gap in shown]
    assert gaps == sorted(gaps, reverse=True)
    said = " ".join(f"{done.err} {done.out}".split())
    assert re.search(r"search ended: [^;]+; best \S+ samples/s \([^)]*\), bound .*?, gap \S+ %, \d+ plans", said)
    assert said.count("search ended: ") == 1
    assert "verdict    valid, fits" in done.out


def test_a_gap_is_a_share(pipebench: CommandLine) -> None:
    done = pipebench("plan", "best", *WHERE, "--gap", "15")
    assert done.code == 2
    assert "15 is not from 0 to 1: 0.02 is 2 %" in done.err


def test_a_wide_gap_ends_it_after_the_first_plan(pipebench: CommandLine) -> None:
    done = pipebench("plan", "best", *WHERE, "--timeout", "30", "--gap", "1")
    assert done.code == 0
    assert re.findall(r"^planning with (.*)$", done.err, re.MULTILINE) == ["layout"]
    _, _, left_out = done.err.partition("\nleft out: ")
    named = " ".join(left_out.split()).removesuffix(": the gap of 100 % was reached before")
    assert {"uniform", "local-search"} < set(named.split(", "))


def test_a_gap_is_for_best_only(pipebench: CommandLine) -> None:
    done = pipebench("plan", "uniform", *WHERE, "--gap", "0.1")
    assert done.code == 2
    assert "--gap is for the planner best, this one is uniform" in done.err


def test_a_gap_below_zero_is_refused(pipebench: CommandLine) -> None:
    done = pipebench("plan", "best", *WHERE, "--gap", "-0.1")
    assert done.code == 2
    assert "-0.1 is not from 0 to 1" in done.err


def test_best_is_no_entrant_of_a_comparison(pipebench: CommandLine) -> None:
    done = pipebench("compare", "--planners", "best", *WHERE)
    assert done.code == 2
    assert "best is no entrant" in done.err
    assert "name local-search" in done.err
