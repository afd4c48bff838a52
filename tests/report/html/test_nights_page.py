"""The page of a history: a curve for each series, changes with their commits, nothing from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pipebench.cli.main import run
from pipebench.report.html.nights_page import nights_page
from pipebench.track.judgement.judgement import judge
from pipebench.track.judgement.series import history_series
from pipebench.track.nights.history import add_night, open_history
from pipebench.track.nights.night import Benchmark, PairedRatios
from tests.track.made_nights import MACHINE, OTHER, measured, night, paired, subject

EVIL = '<script>alert("1")</script>'


def kernel(ratio: float, states: int = 5) -> Benchmark:
    return Benchmark(
        name=f"t.py::{EVIL}",
        seconds={"min": 1.0, "median": 1.0},
        counters={"states": states, EVIL: states},
        paired=PairedRatios(rounds={"numpy": (ratio,)}, calibration="c"),
    )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 nights of one class, slower by a fifth from the 34th, one more state from the 20th, and 2 of another."""
    folder = tmp_path_factory.mktemp("history")
    for number in range(40):
        level = (1.2 if number >= 34 else 1.0) + 0.01 * (number % 3)
        exact = {"work.states": 11 if number >= 20 else 10}
        both = measured(5.0 * level, exact=exact), measured(subject=subject(EVIL), paired=paired(3.0))
        benchmarks = (kernel(2.0 * level, 6 if number >= 38 else 5),)
        add_night(folder, MACHINE, night(number, *both, benchmarks=benchmarks))
        if number in (10, 11):
            add_night(folder, OTHER, night(number, measured(6.0), days=number + 0.2))
    return folder


def html(history: Path) -> str:
    opened = open_history(history)
    return nights_page(opened, judge(opened), "Nights")


class Seen(HTMLParser):
    """Elements, and what they point to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.titles: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "data", "action")]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "title":
            self.titles.append(data)


def test_every_series_has_a_curve(history: Path) -> None:
    opened = open_history(history)
    judgement = judge(opened)
    series = history_series(opened, judgement.events)
    found = {(each.group, each.subject.partition(" ")[0], each.column, each.machine) for each in series}
    assert {
        ("search times", "mine", "", MACHINE.words),
        ("search times", "mine", "", OTHER.words),
        ("benchmarks", kernel(1.0).name.partition(" ")[0], "", MACHINE.words),
        ("counters of benchmarks", kernel(1.0).name.partition(" ")[0], "states", ""),
        ("plans and work", "mine", "simulated_ns", ""),
        ("plans and work", "mine", "memory_bytes", ""),
        ("plans and work", "mine", "work.states", ""),
    } <= found
    page = html(history)
    assert page.count('<svg class="spark"') == len(series)
    lines = re.findall(r'<polyline points="([^"]*)"', page)
    assert sorted(len(line.split()) for line in lines) == sorted(len(each.points) for each in series)


def test_changes_are_marked_on_the_night_with_the_commits_between_which_they_came(history: Path) -> None:
    opened = open_history(history)
    series = history_series(opened, judge(opened).events)
    marks = {
        (each.subject, each.column): [(place, event.before, event.after) for place, event in each.changes]
        for each in series
        if each.changes
    }
    assert marks[subject().label, ""] == [(34, "r33", "r34")]
    assert marks[kernel(1.0).name, ""] == [(34, "r33", "r34")]
    assert marks[kernel(1.0).name, "states"] == [(38, "r37", "r38")]
    places = [place for place, _, _ in marks[subject().label, "work.states"]]
    assert 22 in places  # two nights of another class stand before it among the nights of all
    titles = " ".join(Seen(html(history)).titles)
    assert "between r33 and r34" in titles
    assert "work: states 10 -> 11 (+10 %) between r19 and r20" in titles


def test_it_loads_nothing_runs_nothing_of_strangers_and_has_both_schemes(history: Path) -> None:
    page = html(history)
    seen = Seen(page)
    assert seen.tags.count("script") == 1
    assert set(seen.links) == {"data:,"}
    assert "://" not in page
    assert EVIL not in page
    assert "prefers-color-scheme: dark" in page
    assert "default-src 'none'" in page


def test_the_command_writes_it_into_the_history(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["track", "page", "--history", str(history)]) == 0
    page = (history / "index.html").read_text()
    assert page.count('<svg class="spark"') > 5
    assert run(["track", "page", "--history", str(history / "none")]) == 4
    assert "there is no history" in capsys.readouterr().err
