"""Files of a history: what is written is read again, and everything that is wrong with one is said."""

import hashlib
import json
from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import digest
from pipebench.track.nights.history import append, keep_plan, open_history, read_journal
from tests.builders import stages_plan
from tests.track.made_nights import MACHINE, OTHER, measured, night


def written(folder: Path, nights: int = 3) -> Path:
    for number in range(nights):
        append(folder, MACHINE, night(number, measured(5.0 + number)))
    return folder / f"{MACHINE.name}.jsonl"


def edited(file: Path, number: int, **fields: object) -> None:
    """A line of the file with fields of its night changed, as a person would."""
    lines = file.read_text().splitlines()
    line = json.loads(lines[number - 1])
    line["night"] |= fields
    lines[number - 1] = json.dumps(line, separators=(",", ":"))
    file.write_text("\n".join(lines) + "\n")


def test_nights_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = written(tmp_path)
    journal = read_journal(file)
    assert journal.nights == tuple(night(number, measured(5.0 + number)) for number in range(3))
    assert (journal.machine, journal.notices) == (MACHINE, ())


def test_a_night_only_adds_to_the_file(tmp_path: Path) -> None:
    file = written(tmp_path)
    before = file.read_bytes()
    append(tmp_path, MACHINE, night(7))
    assert file.read_bytes().startswith(before)


def test_each_class_of_machine_has_its_own_file(tmp_path: Path) -> None:
    append(tmp_path, MACHINE, night(0))
    append(tmp_path, OTHER, night(1))
    history = open_history(tmp_path)
    assert set(history.journals) == {MACHINE.name, OTHER.name}
    assert [kept.machine for kept in history.nights] == [MACHINE.name, OTHER.name]


def test_an_edited_line_is_named(tmp_path: Path) -> None:
    file = written(tmp_path)
    edited(file, 3, spent_s=11.0)
    with pytest.raises(PipebenchError, match=r"line 3 was edited by hand: its checksum"):
        read_journal(file)


def test_a_line_taken_out_is_found_at_the_next(tmp_path: Path) -> None:
    file = written(tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[2], lines[3]]))
    with pytest.raises(PipebenchError, match=r"line 2 does not follow the line before"):
        read_journal(file)


def test_an_edited_header_is_found_at_the_first_night(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace('"made_at":"2026-01-01', '"made_at":"2025-01-01', 1))
    with pytest.raises(PipebenchError, match=r"line 2 does not follow"):
        read_journal(file)


def test_nothing_is_added_to_an_edited_history(tmp_path: Path) -> None:
    file = written(tmp_path)
    edited(file, 2, revision="other")
    before = file.read_bytes()
    with pytest.raises(PipebenchError, match="line 2 was edited"):
        append(tmp_path, MACHINE, night(9))
    assert file.read_bytes() == before


def test_a_newer_version_is_said_with_what_to_do(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace('"version":1', '"version":2', 1))
    with pytest.raises(PipebenchError, match=r"written in version 2 .* reads version 1") as caught:
        read_journal(file)
    assert caught.value.hint == "install a newer pipebench"


def test_a_night_with_a_field_of_a_newer_pipebench_is_not_called_edited(tmp_path: Path) -> None:
    file = written(tmp_path, 1)
    head = json.loads(file.read_text().splitlines()[1])["sha256"]
    line = json.loads(file.read_text().splitlines()[1])
    content = json.dumps(line["night"] | {"moon": "full"})
    checksum = hashlib.sha256(f"{head}\n{content}".encode()).hexdigest()
    with open(file, "a") as opened:
        opened.write(f'{{"previous":"{head}","sha256":"{checksum}","night":{content}}}\n')
    with pytest.raises(PipebenchError, match=r"line 3: .*moon") as caught:
        read_journal(file)
    assert "newer pipebench" in (caught.value.hint or "")


def test_a_night_dated_before_the_last_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path)
    before = file.read_bytes()
    with pytest.raises(PipebenchError, match=r"this night is dated 2026-01-02.*2026-01-03.*two clocks"):
        append(tmp_path, MACHINE, night(1))
    assert file.read_bytes() == before


def test_an_unfinished_line_is_said_kept_apart_and_written_over(tmp_path: Path) -> None:
    file = written(tmp_path)
    with open(file, "ab") as opened:
        opened.write(b'{"previous":"abc')
    journal = read_journal(file)
    assert len(journal.nights) == 3
    assert "never finished, its 16 bytes" in journal.notices[0]
    append(tmp_path, MACHINE, night(5))
    assert len(read_journal(file).nights) == 4
    assert (tmp_path / "torn-1.txt").read_bytes() == b'{"previous":"abc'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no history"),
        ("not json\n", "first line is not that of a history"),
        ('{"pipebench":"store","version":1,"content":{}}\n', "holds a store, not a history"),
        ('{"pipebench":"history","version":1,"content":{"moon":1}}\n', "line 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / f"{MACHINE.name}.jsonl"
    file.write_text(content)
    with pytest.raises(PipebenchError, match=message):
        open_history(tmp_path)


def test_a_file_under_the_name_of_another_class_is_refused(tmp_path: Path) -> None:
    written(tmp_path).rename(tmp_path / f"{OTHER.name}.jsonl")
    with pytest.raises(PipebenchError, match="another class of machine"):
        open_history(tmp_path)


def test_missing_nights_are_said(tmp_path: Path) -> None:
    for number in (0, 1, 4, 6):
        append(tmp_path, MACHINE, night(number))
    assert open_history(tmp_path).notices == [
        "2 nights are missing between 2026-01-02 and 2026-01-05",
        "1 night is missing between 2026-01-05 and 2026-01-07",
    ]


def test_a_night_a_few_hours_late_is_not_missing(tmp_path: Path) -> None:
    append(tmp_path, MACHINE, night(0))
    append(tmp_path, MACHINE, night(1, days=1.4))
    assert open_history(tmp_path).notices == []


def test_a_plan_is_kept_under_its_hash_and_an_edited_one_is_said(tmp_path: Path) -> None:
    plan = stages_plan([[0], [1]])
    keep_plan(tmp_path, plan)
    history = open_history(tmp_path)
    assert history.plan(digest(plan)) == plan
    assert history.plan("0" * 64) is None
    file = tmp_path / "plans" / f"{digest(plan)}.json"
    file.write_text(file.read_text().replace('"data_parallel": 1', '"data_parallel": 2', 1))
    with pytest.raises(PipebenchError, match="edited by hand"):
        history.plan(digest(plan))
