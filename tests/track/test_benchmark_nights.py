"""Kernels that became slower are found over nights, with benchmark and commit named; pytest-benchmark agrees."""

import re
from pathlib import Path

import pytest

from pipebench.cli.main import run
from pipebench.report.tracking.reports import night_report
from pipebench.report.tracking.writers import markdown_report
from pipebench.track.judgement.events import Event
from pipebench.track.judgement.judgement import Judgement, judge
from pipebench.track.nights.history import open_history
from tests.nightly import mostly_at_night
from tests.track.counted_benchmarks import (
    AFTER,
    BEFORE,
    NAME,
    commit,
    counted_repository,
    dated,
    run_benchmarks,
)

REGRESSED = re.compile(r"^\t(\S+) \(.*\) - ", re.MULTILINE)


class Nights:
    """Nights of a repository, each an import of benchmark files, by the command."""

    def __init__(self, repository: Path, history: Path) -> None:
        self.repository, self.history, self.count = repository, history, 0

    def record(self, files: list[Path], commit_id: str = "") -> int:
        words = []
        for file in files:
            self.count += 1
            words += ["--benchmark-json", str(dated(file, self.count, commit_id))]
        return run(["track", "record", "--history", str(self.history), "--import-only", *words])

    def judged(self) -> Judgement:
        return judge(open_history(self.history))

    def slower(self) -> dict[str, Event]:
        return {event.subject: event for event in self.judged().events if event.fails and event.kind == "time"}


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    repository = counted_repository(tmp_path / "mine")
    monkeypatch.chdir(repository)
    return Nights(repository, tmp_path / "history")


def test_a_kernel_fifteen_per_cent_slower_is_found_with_its_name_and_its_commit(
    nights: Nights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each process is off by some 2 %, every other night the machine is three times as fast."""
    speeds = (1.9, 0.6)
    fresh = [tmp_path / f"before-{number}.json" for number in range(2)]
    for number, file in enumerate(fresh):
        run_benchmarks(nights.repository, file, MACHINE=speeds[number], NOISE=0.02, PROCESS=f"b{number}")
    for night in range(31):
        if night % 10 == 5:
            last_good = commit(nights.repository, BEFORE, f"words {night}")
        assert nights.record([fresh[night % 2]], last_good if night >= 5 else "") == 0
    slowed = commit(nights.repository, BEFORE | {"fifteen": AFTER["fifteen"]}, "a check more in the inner loop")
    slow = [tmp_path / f"after-{number}.json" for number in range(2)]
    for number, file in enumerate(slow):
        run_benchmarks(nights.repository, file, MACHINE=speeds[-1 - number], NOISE=0.02, PROCESS=f"a{number}")
    for file in (*slow, slow[0]):
        assert nights.slower() == {}
        assert nights.record([file]) == 0
    event = nights.slower().pop(NAME.format("fifteen"))
    assert not nights.slower().keys() - {NAME.format("fifteen")}
    assert event.change == pytest.approx(0.15, abs=0.05)
    assert (event.before, event.after) == (last_good[:7], slowed[:7])
    capsys.readouterr()
    assert run(["track", "check", "--history", str(nights.history)]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert NAME.format("fifteen") in told
    assert f"slower since {event.began[:10]}, between {last_good[:7]} and {slowed[:7]}" in told
    assert "| no ratio |" not in markdown_report(night_report(nights.judged()))


@pytest.mark.parametrize("references", mostly_at_night([True, False], [True]))
def test_medians_three_times_as_long_are_worse_from_the_second_night(
    nights: Nights, tmp_path: Path, references: bool
) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    run_benchmarks(nights.repository, before, references=references)
    assert nights.record([before]) == 0
    commit(nights.repository, AFTER, "slower")
    run_benchmarks(nights.repository, after, references=references)
    assert nights.record([after]) == 0
    assert set(nights.slower()) == {NAME.format("triple")}
    assert nights.slower()[NAME.format("triple")].change == pytest.approx(2.0, abs=1e-3)
    assert nights.judged().verdict == "worse"
    as_it_was = commit(nights.repository, BEFORE, "as it was")
    assert nights.record([before], as_it_was) == 0
    assert nights.slower() == {}


def test_pytest_benchmark_and_track_agree_on_what_became_slower(nights: Nights, tmp_path: Path) -> None:
    """One file before, one after; the threshold of pytest-benchmark is that of the rule, 10 % of the median."""
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    run_benchmarks(nights.repository, before)
    for _ in range(31):
        assert nights.record([before]) == 0
    commit(nights.repository, AFTER, "slower")
    done = run_benchmarks(
        nights.repository, after, f"--benchmark-compare={before}", "--benchmark-compare-fail=median:10%"
    )
    assert done.returncode != 0
    theirs = set(REGRESSED.findall(done.stdout + done.stderr))
    for _ in range(3):
        assert nights.record([after]) == 0
    ours = {name.partition("::")[2] for name in nights.slower()}
    assert ours == theirs == {"test_kernel[fifteen]", "test_kernel[triple]"}


def test_benchmarks_of_another_commit_than_the_working_tree_are_refused(
    nights: Nights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.json"
    run_benchmarks(nights.repository, before)
    commit(nights.repository, AFTER, "slower")
    assert nights.record([before]) == 2
    assert "the benchmarks ran at commit" in capsys.readouterr().err
    assert not nights.history.exists()


def test_counters_are_exact_beside_the_ratios(nights: Nights, tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    run_benchmarks(nights.repository, before)
    assert nights.record([before]) == 0
    kernels = nights.repository / "benchmarks" / "kernels.py"
    kernels.write_text(kernels.read_text().replace('"same": 7', '"same": 8'))
    run_benchmarks(nights.repository, after)
    assert nights.record([after]) == 0
    event = next(event for event in nights.judged().events if event.fails)
    assert (event.kind, event.subject) == ("exact", NAME.format("same"))
    assert [(each.name, each.before, each.after) for each in event.columns] == [("states", 7, 8)]
