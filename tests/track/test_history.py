"""A history is a store of nights: what is written is read again, joined with others, and what is wrong is said."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.merge import merge
from pipebench.bench.store.lines import with_checksum
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import digest
from pipebench.track.nights.history import NIGHTS, NightJournal, add_night, open_history
from tests.builders import stages_plan
from tests.track.made_nights import KINDS, MACHINE, OTHER, add_nights, measured, night


def written(folder: Path, nights: int = 3) -> Path:
    add_nights(folder, MACHINE, [night(number, measured(5.0 + number)) for number in range(nights)])
    return folder / "nights.jsonl"


def edited(file: Path, number: int, **fields: object) -> None:
    """A line of the file with fields of its night changed, as a person would."""
    lines = file.read_text().splitlines()
    line = json.loads(lines[number - 1])
    line["night"] |= fields
    lines[number - 1] = json.dumps(line, separators=(",", ":"))
    file.write_text("\n".join(lines) + "\n")


def test_nights_are_read_as_they_were_written(tmp_path: Path) -> None:
    written(tmp_path)
    history = open_history(tmp_path)
    assert history.of_class(MACHINE) == tuple(night(number, measured(5.0 + number)) for number in range(3))
    assert (history.machines, history.notices) == ([MACHINE], ())


def test_a_night_only_adds_to_the_file(tmp_path: Path) -> None:
    file = written(tmp_path)
    before = file.read_bytes()
    add_night(tmp_path, MACHINE, night(7))
    assert file.read_bytes().startswith(before)


def test_classes_of_machines_stand_in_one_file_each_in_its_own_order(tmp_path: Path) -> None:
    add_nights(tmp_path, MACHINE, [night(0), night(2)])
    add_nights(tmp_path, OTHER, [night(1)])
    history = open_history(tmp_path)
    assert set(history.machines) == {MACHINE, OTHER}
    assert [kept.machine for kept in history.nights] == [MACHINE, OTHER, MACHINE]


def test_a_folder_that_holds_other_things_may_hold_a_history(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("baselines")
    written(tmp_path)
    assert len(open_history(tmp_path).nights) == 3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_is_read_of_an_edited_history_nor_added_to_it(tmp_path: Path, number: int) -> None:
    file = written(tmp_path)
    edited(file, number, spent_s=11.0)
    before = file.read_bytes()
    for access in (open_history, lambda folder: add_night(folder, MACHINE, night(9))):
        with pytest.raises(PipebenchError, match=rf"line {number} is damaged: it was changed") as caught:
            access(tmp_path)
        assert "version control" in (caught.value.hint or "")
    assert file.read_bytes() == before


def test_a_line_without_its_checksum_is_an_edited_one(tmp_path: Path) -> None:
    file = written(tmp_path, 1)
    line = json.loads(file.read_text())
    del line["checksum"]
    file.write_text(json.dumps(line) + "\n")
    with pytest.raises(PipebenchError, match="line 1 is damaged: it has no checksum"):
        open_history(tmp_path)


def test_a_line_taken_out_is_found_at_the_next(tmp_path: Path) -> None:
    file = written(tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[2]]))
    with pytest.raises(PipebenchError, match=r"the night before that of 2026-01-03.* was taken out"):
        open_history(tmp_path)


def test_a_newer_version_is_said_with_what_to_do(tmp_path: Path) -> None:
    written(tmp_path)
    manifest = tmp_path / "store.json"
    manifest.write_text(manifest.read_text().replace('"version":2', '"version":3', 1))
    with pytest.raises(PipebenchError, match=r"version 3 of the history format.* reads version 2") as caught:
        open_history(tmp_path)
    assert "install a newer pipebench" in (caught.value.hint or "")


def test_a_night_with_a_field_of_a_newer_pipebench_is_not_called_edited(tmp_path: Path) -> None:
    file = written(tmp_path, 1)
    line = json.loads(file.read_text())
    line["night"]["moon"] = "full"
    file.write_bytes(with_checksum(json.dumps(line, separators=(",", ":")).encode() + b"\n"))
    with pytest.raises(PipebenchError, match=r"moon.*may come from a newer pipebench"):
        open_history(tmp_path)


def test_a_night_dated_before_the_last_of_its_class_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path)
    before = file.read_bytes()
    with pytest.raises(PipebenchError, match=r"two clocks disagree: here it is 2026-01-02.* dated 2026-01-03"):
        add_night(tmp_path, MACHINE, night(1))
    assert file.read_bytes() == before
    add_night(tmp_path, OTHER, night(1))


def test_nights_of_one_moment_are_dated_one_after_the_other(tmp_path: Path) -> None:
    """Two that end in the same second: events are named by the moment of their night."""
    for number in (0, 1, 1, 1):
        add_night(tmp_path, MACHINE, night(number), measured=True)
    found = [each.night for each in open_history(tmp_path).nights]
    assert [night.recorded_at[-9:] for night in found] == [":00+00:00", ":00+00:00", ":01+00:00", ":02+00:00"]
    assert [notice for night in found for notice in night.notices if "clock" in notice] == []


def test_an_unfinished_line_is_said_kept_apart_and_written_over(tmp_path: Path) -> None:
    file = written(tmp_path)
    with open(file, "ab") as opened:
        opened.write(b'{"key":"abc')
    history = open_history(tmp_path)
    assert len(history.nights) == 3
    assert "the last line is torn (it has no end), its 11 bytes" in history.notices[0]
    add_night(tmp_path, MACHINE, night(5))
    assert len(open_history(tmp_path).nights) == 4
    assert (tmp_path / "torn-1.txt").read_bytes() == b'{"key":"abc'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "damaged"),
        ('{"pipebench":"plan","version":1,"content":{}}\n', "holds a plan, not a history"),
        (None, "it has no store.json"),
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    written(tmp_path)
    (tmp_path / "store.json").unlink()
    if content is not None:
        (tmp_path / "store.json").write_text(content)
    with pytest.raises(PipebenchError, match=message):
        open_history(tmp_path)


def test_missing_nights_are_said(tmp_path: Path) -> None:
    add_nights(tmp_path, MACHINE, map(night, (0, 1, 4, 6)))
    assert open_history(tmp_path).notices == (
        "2 nights are missing between 2026-01-02 and 2026-01-05",
        "1 night is missing between 2026-01-05 and 2026-01-07",
    )


def test_a_night_a_few_hours_late_is_not_missing(tmp_path: Path) -> None:
    add_nights(tmp_path, MACHINE, [night(0), night(1, days=1.4)])
    assert open_history(tmp_path).notices == ()


def test_a_plan_is_kept_under_its_hash_and_an_edited_one_is_said(tmp_path: Path) -> None:
    plan = stages_plan([[0], [1]])
    add_nights(tmp_path, MACHINE, [night(0)], [plan])
    history = open_history(tmp_path)
    assert history.plan(digest(plan)) == plan
    assert history.plan("0" * 64) is None
    (file,) = (tmp_path / "objects").rglob("*.json")
    file.write_text(file.read_text().replace('"data_parallel":1', '"data_parallel":2', 1))
    with pytest.raises(PipebenchError, match="damaged: its content has another hash"):
        history.plan(digest(plan))


@settings(max_examples=12)
@given(st.lists(st.sets(st.integers(1, 6)), min_size=1, max_size=3))
def test_the_union_whatever_the_histories(tmp_path_factory: pytest.TempPathFactory, held: list[set[int]]) -> None:
    folder = tmp_path_factory.mktemp("union")
    for place, numbers in enumerate(held):
        add_nights(folder / str(place), MACHINE, map(night, (0, *sorted(numbers))))
    done = merge([folder / str(place) for place in range(len(held))], folder / "all", kinds=KINDS)
    joined = open_history(folder / "all")
    keys = [each.key for place in range(len(held)) for each in NightJournal.open(folder / str(place)).rows()]
    assert (len(joined.nights), done.equal) == (len(set(keys)), len(keys) - len(set(keys)))
    assert {kept.night.revision for kept in joined.nights} == {f"r{n}" for n in set().union({0}, *held)}
    assert NIGHTS.plural == done.kind
