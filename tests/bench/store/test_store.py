"""A store: opened or refused, filled, read back, never harmed by what goes wrong."""

import errno
import json
import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pipebench.bench.store import Store, StoredRow
from pipebench.bench.store import access as lock_module
from pipebench.bench.store.access import hold_lock, storing
from pipebench.bench.store.lines import Lines
from pipebench.bench.store.objects import script_id
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import digest
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, inputs, stored
from tests.builders import chain_problem, cluster


def one_line(error: pytest.ExceptionInfo[PipebenchError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_row_and_what_is_behind_it_come_back(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "a" / "store")
    script = b"def plan(problem, context): ...\n"
    assert store.append(stored(1), PROBLEM, PLAN, SCHEDULE, script=script)
    for again in (
        store,
        Store.open(tmp_path / "a" / "store"),
        Store.open(tmp_path / "a" / "store", create=False, writable=False),
    ):
        (row,) = again.rows()
        assert again.latest() == {stored(1).key: row}
        assert again.find(stored(1).key) == row
        assert again.find("0" * 64) is None
        assert row.row.plan_id == digest(PLAN)
        assert row.row.schedule_id == digest(SCHEDULE)
        assert again.problem(row.row.problem_id) == PROBLEM
        assert again.plan(digest(PLAN)) == PLAN
        assert again.schedule(digest(SCHEDULE)) == SCHEDULE
        assert again.script(script_id(script)) == script
        assert row == replace(
            stored(1, script_id(script)),
            row=replace(stored(1).row, plan_id=digest(PLAN), schedule_id=digest(SCHEDULE)),
        )
        assert again.notices == []


def test_a_row_without_plan_is_stored(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    assert store.append(stored(1, status="timeout", reason="no plan within 1 s"), PROBLEM)
    assert Store.open(tmp_path).rows() == [stored(1, status="timeout", reason="no plan within 1 s")]


def test_a_key_is_stored_once_unless_it_is_replaced(tmp_path: Path) -> None:
    ours, theirs = Store.open(tmp_path), Store.open(tmp_path)
    assert ours.append(stored(1, reason="first"), PROBLEM)
    assert not theirs.append(stored(1, reason="second"), PROBLEM)
    assert theirs.latest()[stored(1).key].row.reason == "first"
    assert theirs.append(stored(1, reason="third"), PROBLEM, replace=True)
    ours.refresh()
    assert ours.latest()[stored(1).key].row.reason == "third"
    assert [row.row.reason for row in ours.rows()] == ["first", "third"]
    assert [row.row.reason for row in Store.open(tmp_path).latest().values()] == ["third"]


def test_objects_are_written_before_the_line_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[str] = []
    real = os.replace

    def watched(source: str, target: Path) -> None:
        assert (tmp_path / "rows.jsonl").stat().st_size == (0 if len(renamed) < 3 else size)
        renamed.append(Path(target).name)
        real(source, target)

    store = Store.open(tmp_path)
    monkeypatch.setattr(os, "replace", watched)
    store.append(stored(1), PROBLEM, PLAN, SCHEDULE)
    size = (tmp_path / "rows.jsonl").stat().st_size
    store.append(stored(2), PROBLEM, PLAN, SCHEDULE)
    Store.open(tmp_path).append(stored(3), PROBLEM, PLAN, SCHEDULE)
    assert sorted(renamed) == sorted(f"{i}.json" for i in (PROBLEM.problem_id, digest(PLAN), digest(SCHEDULE)))


def object_file(folder: Path, identity: str, ending: str = "json") -> Path:
    return folder / "objects" / identity[:2] / f"{identity}.{ending}"


@pytest.mark.parametrize("left", [b"", b"{}", b'{"pipebench":"bare-plan","version":1,'])
def test_a_damaged_object_is_written_anew(tmp_path: Path, left: bytes) -> None:
    script = b"def plan(problem, context): ...\n"
    Store.open(tmp_path).append(stored(1), PROBLEM, PLAN, SCHEDULE, script=script)
    whole = {file: file.read_bytes() for file in (tmp_path / "objects").glob("*/*")}
    assert len(whole) == 4
    for file in whole:
        file.write_bytes(left)
    Store.open(tmp_path).append(stored(2), PROBLEM, PLAN, SCHEDULE, script=script)
    assert {file: file.read_bytes() for file in whole} == whole


def test_a_whole_object_of_other_bytes_stays(tmp_path: Path) -> None:
    Store.open(tmp_path).append(stored(1), PROBLEM)
    file = object_file(tmp_path, PROBLEM.problem_id)
    file.write_bytes(msgspec.json.format(file.read_bytes()))
    before = file.read_bytes()
    Store.open(tmp_path).append(stored(2), PROBLEM)
    assert file.read_bytes() == before


def test_a_link_in_place_of_an_object_leads_nowhere(tmp_path: Path) -> None:
    mine, store = tmp_path / "mine.txt", tmp_path / "store"
    mine.write_text("keep me")
    Store.open(store).append(stored(1), PROBLEM)
    file = object_file(store, PROBLEM.problem_id)
    file.unlink()
    file.symlink_to(mine)
    Store.open(store).append(stored(2), PROBLEM)
    assert mine.read_text() == "keep me"
    assert Store.open(store).problem(PROBLEM.problem_id) == PROBLEM


def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    other = chain_problem([1], [1], cluster(1))
    with pytest.raises(ValueError, match="problem_id"):
        store.append(stored(1), other)
    with pytest.raises(ValueError, match="plan_id"):
        store.append(stored(1, plan_id="0" * 64), PROBLEM, PLAN)
    with pytest.raises(ValueError, match="key"):
        store.append(replace(stored(1), inputs=inputs(2)), PROBLEM)
    assert Store.open(tmp_path).rows() == []


def test_opening_twice_changes_nothing(tmp_path: Path) -> None:
    Store.open(tmp_path).append(stored(1), PROBLEM, PLAN, SCHEDULE)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    Store.open(tmp_path)
    Store.open(tmp_path, writable=False)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_reader_does_not_touch_a_torn_end(tmp_path: Path) -> None:
    Store.open(tmp_path).append(stored(1), PROBLEM)
    with open(tmp_path / "rows.jsonl", "ab") as file:
        file.write(b'{"key":')
    reader = Store.open(tmp_path, create=False, writable=False)
    assert reader.rows() == [stored(1)]
    assert "torn" in reader.notices[0]
    assert not (tmp_path / "torn-1.txt").exists()
    writer = Store.open(tmp_path)
    assert writer.rows() == [stored(1)]
    assert (tmp_path / "torn-1.txt").read_bytes() == b'{"key":'
    (notice,) = writer.notices
    assert "rows.jsonl" in notice
    assert "7 bytes" in notice
    assert "torn-1.txt" in notice


def test_a_copy_without_lock_and_empty_folders_is_readable(tmp_path: Path) -> None:
    Store.open(tmp_path).append(stored(1), PROBLEM)
    (tmp_path / "lock").unlink()
    shutil.rmtree(tmp_path / "objects")
    reader = Store.open(tmp_path, create=False, writable=False)
    assert reader.rows() == [stored(1)]
    with pytest.raises(PipebenchError, match=r"has no problem"):
        reader.problem(PROBLEM.problem_id)


def test_a_newer_store_is_refused_with_both_versions(tmp_path: Path) -> None:
    Store.open(tmp_path).append(stored(1), PROBLEM)
    before = (tmp_path / "rows.jsonl").read_bytes()
    made = json.loads((tmp_path / "store.json").read_bytes())
    (tmp_path / "store.json").write_text(json.dumps({**made, "version": 7, "more": 1}))
    for writable in (True, False):
        with pytest.raises(PipebenchError, match=r"version 7 .* version 1 .*newer pipebench") as error:
            Store.open(tmp_path, writable=writable)
        assert str(tmp_path) in one_line(error)
    assert (tmp_path / "rows.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "manifest", [b"", b"{", b"[1]", b'{"pipebench":"store","version":1,"content":3}', b'{"pipebench":"rows"}']
)
def test_a_damaged_manifest_is_one_line(tmp_path: Path, manifest: bytes) -> None:
    (tmp_path / "store.json").write_bytes(manifest)
    with pytest.raises(PipebenchError, match=r"store\.json is damaged") as error:
        Store.open(tmp_path)
    one_line(error)
    assert sorted(os.listdir(tmp_path)) == ["store.json"]


def test_another_document_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "store.json").write_bytes(b'{"pipebench":"rows","version":1,"content":{"rows":[]}}')
    with pytest.raises(PipebenchError, match="holds rows, not a store"):
        Store.open(tmp_path)


def test_a_folder_with_other_things_is_not_adopted(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(PipebenchError, match=r"holds other things \(thesis\.tex\)") as error:
        Store.open(tmp_path)
    one_line(error)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_store_that_another_process_makes_meanwhile_is_no_other_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.listdir

    def late(path: Path) -> list[str]:
        monkeypatch.undo()
        Store.open(path)
        return real(path)

    monkeypatch.setattr(os, "listdir", late)
    assert Store.open(tmp_path).append(stored(1), PROBLEM)


def test_what_a_killed_process_left_of_a_new_store_is_adopted(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / ".store.json.4711.tmp").write_bytes(b"{")
    store = Store.open(tmp_path)
    (tmp_path / "objects" / "ab").mkdir(parents=True)
    (tmp_path / "objects" / "ab" / ".abc.json.4711.tmp").write_bytes(b"{")
    store.append(stored(1), PROBLEM)
    assert Store.open(tmp_path).rows() == [stored(1)]
    assert list(tmp_path.rglob(".*.tmp")) == []


def test_a_store_that_is_not_there_is_made_only_when_asked_for(tmp_path: Path) -> None:
    for writable in (True, False):
        with pytest.raises(PipebenchError, match="there is no store"):
            Store.open(tmp_path / "no", create=False, writable=writable)
        with pytest.raises(PipebenchError, match=r"it has no store\.json"):
            Store.open(tmp_path, create=False, writable=writable)
    assert os.listdir(tmp_path) == []


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(PipebenchError, match="is a file, not a folder") as error:
        Store.open(tmp_path / "file")
    one_line(error)
    with pytest.raises(PipebenchError, match="not a directory") as error:
        Store.open(tmp_path / "file" / "below")
    one_line(error)
    with pytest.raises(PipebenchError, match="not a path"):
        Store.open(f"{tmp_path}/a\0b")
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_shows_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    Store.open(tmp_path).append(stored(1), PROBLEM)
    real = open

    def refusing(file: object, mode: str = "r", *more: object, **named: object) -> object:
        if set(mode) & set("wxa+"):
            raise OSError(code, os.strerror(code), str(file))
        return real(file, mode, *more, **named)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", refusing)
    with pytest.raises(PipebenchError, match=os.strerror(code).lower()) as error:
        Store.open(tmp_path)
    assert str(tmp_path) in one_line(error)
    assert error.value.hint
    assert Store.open(tmp_path, writable=False).rows() == [stored(1)]


def test_a_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "shut"
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(PipebenchError, match="permission denied"):
        Store.open(folder)


@pytest.mark.parametrize("objects", [True, False])
def test_a_full_disk_costs_one_row_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objects: bool
) -> None:
    store = Store.open(tmp_path)
    store.append(stored(1), PROBLEM)

    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync" if objects else "write", full)
    with pytest.raises(PipebenchError, match=r"no space left on device.*finished trials are kept") as error:
        store.append(stored(2), PROBLEM, PLAN if objects else None)
    one_line(error)
    monkeypatch.undo()
    assert store.rows() == Store.open(tmp_path, writable=False).rows() == [stored(1)]
    assert list(tmp_path.rglob("*.tmp")) == []
    assert store.append(stored(2), PROBLEM)
    assert Store.open(tmp_path).rows() == [stored(1), stored(2)]


def test_a_device_that_is_full(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    (tmp_path / "rows.jsonl").symlink_to("/dev/full")
    lines = Lines(tmp_path / "rows.jsonl", StoredRow, print)
    with pytest.raises(PipebenchError, match="no space left on device") as error, storing(tmp_path):
        lines.append(stored(1))
    one_line(error)


def test_a_store_that_vanished_is_one_line(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(PipebenchError, match="no such file or directory") as error:
        store.append(stored(1), PROBLEM)
    one_line(error)


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.append(stored(1), PROBLEM, PLAN, SCHEDULE, script=b"text")
    other = chain_problem([1], [1], cluster(1))
    for path in (tmp_path / "objects").rglob("*.json"):
        data = json.loads(path.read_bytes())
        if data["pipebench"] == "problem":
            data["content"] = json.loads(msgspec.json.encode(other))
        elif data["pipebench"] == "bare-plan":
            data["content"]["copies"] = 2
        else:
            path.write_bytes(b"{")
            continue
        path.write_text(json.dumps(data))
    for path in (tmp_path / "objects").rglob("*.py"):
        path.write_bytes(b"other text")
    with pytest.raises(PipebenchError, match=r"problem .* is damaged"):
        store.problem(PROBLEM.problem_id)
    with pytest.raises(PipebenchError, match=r"plan .* is damaged"):
        store.plan(digest(PLAN))
    with pytest.raises(PipebenchError, match="not valid JSON"):
        store.schedule(digest(SCHEDULE))
    with pytest.raises(PipebenchError, match=r"script .* is damaged"):
        store.script(script_id(b"text"))


@pytest.mark.parametrize("identity", ["", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 65, "a/" * 32])
def test_only_hashes_name_objects(tmp_path: Path, identity: str) -> None:
    with pytest.raises(PipebenchError, match="has no plan"):
        Store.open(tmp_path).plan(identity)


def test_a_lock_that_is_never_given_back_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(tmp_path)
    monkeypatch.setattr(lock_module, "PATIENCE_S", 0.05)
    with (
        hold_lock(tmp_path / "lock"),
        pytest.raises(PipebenchError, match=re.escape(f"store {str(tmp_path)!r}: another process")) as error,
    ):
        store.append(stored(1), PROBLEM)
    one_line(error)
    assert store.append(stored(1), PROBLEM)
