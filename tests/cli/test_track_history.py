"""A history as a user meets it: shown, joined, converted, each by its own command, which errors name."""

import shutil
from pathlib import Path

import msgspec
import pytest

from pipebench.bench.merge import merge
from pipebench.bench.store import Store
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import digest
from pipebench.track.judgement.judgement import judge
from pipebench.track.nights.history import add_night, open_history
from tests.builders import stages_plan
from tests.cli.command_line import CommandLine
from tests.track.made_nights import KINDS, MACHINE, OTHER, add_nights, measured, night

EARLIER = Path(__file__).parents[1] / "track" / "earlier"
"""Three nights as pipebench 0.2 wrote them, on two classes of machine."""


def test_a_store_of_trials_is_no_history_and_a_history_no_store_of_trials(
    pipebench: CommandLine, tmp_path: Path
) -> None:
    Store.open(tmp_path / "trials")
    with pytest.raises(PipebenchError, match="holds a store, not a history") as caught:
        add_night(tmp_path / "trials", MACHINE, night(0))
    assert "pipebench show" in (caught.value.hint or "")
    add_nights(tmp_path / "nights", MACHINE, [night(0)])
    nights = str(tmp_path / "nights")
    for words in (("show", nights), ("diff", nights, nights), ("pack", nights, "-o", "x.zip"), ("rerun", nights)):
        done = pipebench(*words)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert f"`pipebench track report --history {nights}` shows it" in done.err


def test_histories_of_two_machines_are_joined(pipebench: CommandLine, tmp_path: Path) -> None:
    """They began as one, which shipped; each got nights of its own, and the plans of these."""
    plan = stages_plan([[0], [1]])
    add_nights(tmp_path / "one", MACHINE, [night(0)])
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    add_nights(tmp_path / "one", MACHINE, [night(1), night(2, measured(exact={"work.states": 11}))])
    add_nights(tmp_path / "other", OTHER, [night(1, measured(exact={"plan": digest(plan)}), days=1.1)], [plan])
    places = [str(tmp_path / name) for name in ("one", "other")]
    done = pipebench("merge", *places, "-o", str(tmp_path / "all"))
    assert (done.code, done.out) == (0, f"{tmp_path / 'all'}: 4 nights, 1 equal ones left out, 1 objects\n")
    joined = open_history(tmp_path / "all")
    assert [kept.machine for kept in joined.nights] == [MACHINE, MACHINE, OTHER, MACHINE]
    assert joined.plan(digest(plan)) == plan
    assert [event.fails for event in judge(joined).events] == [False, True]
    add_nights(tmp_path / "all", OTHER, [night(3)])
    Store.open(tmp_path / "trials")
    with pytest.raises(PipebenchError, match="holds a store, not a history"):
        merge([places[0], tmp_path / "trials"], tmp_path / "both", kinds=KINDS)


def test_what_an_earlier_pipebench_wrote_is_named_with_the_command_and_converted(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "history"
    shutil.copytree(EARLIER, folder)
    record = ("track", "record", "--planners", "uniform", "--history")
    for words in (
        *(("track", name, "--history") for name in ("check", "report", "page")),
        record,
        ("merge", "-o", "x"),
    ):
        done = pipebench(*words, str(folder))
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert f"pipebench track convert --history {folder}" in done.err
    done = pipebench("track", "convert", "--history", str(folder))
    assert (done.code, done.err) == (0, f"{folder}: 3 nights converted\n")
    assert {file.name for file in folder.iterdir()} == {"store.json", "nights.jsonl", "objects", "lock"}
    done = pipebench("track", "check", "--history", str(folder), "--json")
    event = msgspec.json.decode(done.out)["judgement"]["events"][0]
    # as pipebench 0.2 said it of these files
    assert (done.code, event["identity"], event["state"]) == (1, "42507118", "open")
    assert event["told"] == "2026-01-03T02:23:00+00:00"
    assert open_history(folder).plan(event["plans"][1]) == stages_plan([[0], [1, 2]])
    assert "holds no nights of an earlier pipebench" in pipebench("track", "convert", "--history", str(folder)).err
