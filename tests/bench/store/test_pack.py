"""Packing a store, and reading results wherever they are."""

import json
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from pipebench.bench.merge import stores_at
from pipebench.bench.store import Store, open_results
from pipebench.bench.store import pack as archive
from pipebench.bench.store.objects import object_name, script_id
from pipebench.bench.store.pack import pack
from pipebench.cli.commands.results.pack import command
from pipebench.documents.document import Rows, encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import digest
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored

SCRIPT = b"raise SystemExit('never run')\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two keys, one of them twice, and an object that no row refers to."""
    made = Store.open(tmp_path / "store")
    made.append(stored(1, reason="old"), PROBLEM, PLAN, SCHEDULE, script=SCRIPT)
    made.append(stored(2, status="timeout"), PROBLEM)
    made.append(stored(1, reason="new"), PROBLEM, PLAN, SCHEDULE, script=SCRIPT, replace=True)
    stray = made.path / "objects" / object_name("bare-plan", "0" * 64)
    stray.parent.mkdir()
    stray.write_text("{}")
    return made


@pytest.fixture
def packed(store: Store, tmp_path: Path) -> Path:
    pack(store.path, tmp_path / "results.zip")
    return tmp_path / "results.zip"


def test_a_packed_store_reads_as_the_store(store: Store, packed: Path) -> None:
    for path in (store.path, packed):
        results = open_results(path)
        assert results.notices == ()
        assert list(results) == [row.row for row in store.latest().values()]
        assert [row.reason for row in results] == ["new", ""]
        assert results.stored == tuple(store.latest().values())
        assert results.behind.problem(PROBLEM.problem_id) == PROBLEM
        assert results.behind.plan(digest(PLAN)) == PLAN
        assert results.behind.schedule(digest(SCHEDULE)) == SCHEDULE


def test_what_is_in_the_zip(store: Store, packed: Path) -> None:
    with zipfile.ZipFile(packed) as opened:
        names = opened.namelist()
        assert names == sorted(names)
        assert set(names) == {
            "store.json",
            "rows.jsonl",
            f"objects/{object_name('problem', PROBLEM.problem_id)}",
            f"objects/{object_name('bare-plan', digest(PLAN))}",
            f"objects/{object_name('schedule', digest(SCHEDULE))}",
            f"objects/{object_name('script', script_id(SCRIPT))}",
        }
        assert opened.read("rows.jsonl") == (store.path / "rows.jsonl").read_bytes()
        assert all(not (stat.S_IMODE(entry.external_attr >> 16) & 0o111) for entry in opened.infolist())
        assert opened.testzip() is None


def test_the_same_store_gives_the_same_bytes(store: Store, packed: Path, tmp_path: Path) -> None:
    for path in store.path.rglob("*"):
        os.utime(path, (1, 1))
    done = pack(store.path, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()
    assert (done.rows, done.objects, done.bytes, done.notices) == (3, 4, packed.stat().st_size, ())


def test_an_unpacked_zip_is_a_store(store: Store, packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed) as opened:
        opened.extractall(tmp_path / "unpacked")
    assert Store.open(tmp_path / "unpacked").rows() == store.rows()
    assert Store.open(tmp_path / "unpacked").append(stored(3), PROBLEM)


def test_damaged_and_missing_objects_are_named(store: Store, tmp_path: Path) -> None:
    (store.path / "objects" / object_name("bare-plan", digest(PLAN))).unlink()
    (store.path / "objects" / object_name("script", script_id(SCRIPT))).write_bytes(b"other")
    with open(store.path / "rows.jsonl", "ab") as file:
        file.write(b'{"torn')
    done = pack(store.path, tmp_path / "results.zip")
    assert done.objects == 2
    assert "torn" in done.notices[0]
    assert {notice.split()[2] for notice in done.notices[1:]} == {"store", "script"}
    assert any("has no plan" in notice for notice in done.notices[1:])
    assert (store.path / "rows.jsonl").read_bytes().endswith(b'{"torn')
    results = open_results(tmp_path / "results.zip")
    assert len(results.rows) == 2
    with pytest.raises(PipebenchError, match=r"results\.zip has no plan"):
        results.behind.plan(digest(PLAN))


def test_where_a_zip_cannot_go(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (store.path / "rows.jsonl").read_bytes()
    for place in (store.path / "rows.jsonl", store.path / "objects" / ".." / "a.zip"):
        with pytest.raises(PipebenchError, match="inside the store"):
            pack(store.path, place)
    assert (store.path / "rows.jsonl").read_bytes() == rows
    with pytest.raises(PipebenchError, match="is a folder"):
        pack(store.path, tmp_path)
    with pytest.raises(PipebenchError, match="no such file or directory"):
        pack(store.path, tmp_path / "no" / "a.zip")
    with pytest.raises(PipebenchError, match="there is no store"):
        pack(tmp_path / "nothing", tmp_path / "a.zip")
    (tmp_path / "old.zip").write_bytes(b"precious")
    monkeypatch.setattr("pipebench.bench.store.pack.MOST_MEMBERS", 3)
    with pytest.raises(PipebenchError, match="too large for one zip"):
        pack(store.path, tmp_path / "old.zip")
    assert (tmp_path / "old.zip").read_bytes() == b"precious"
    assert list(tmp_path.glob(".*.tmp")) == []


def test_every_cut_zip_is_one_line(packed: Path, tmp_path: Path) -> None:
    whole = packed.read_bytes()
    for length in range(2, len(whole) - 1, 97):
        (tmp_path / "cut.zip").write_bytes(whole[:length])
        with pytest.raises(PipebenchError) as error:
            open_results(tmp_path / "cut.zip")
        assert "\n" not in str(error.value)


def test_changed_bytes_never_pass_for_the_plan(packed: Path, tmp_path: Path) -> None:
    whole = packed.read_bytes()
    for place in range(0, len(whole), 61):
        (tmp_path / "bad.zip").write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(PipebenchError):
            results = open_results(tmp_path / "bad.zip")
            assert results.behind.plan(digest(PLAN)) == PLAN
            assert results.behind.problem(PROBLEM.problem_id) == PROBLEM


def rewritten(packed: Path, change: Callable[[zipfile.ZipFile], None], without: str = "") -> Path:
    """A copy of the zip, changed."""
    target = packed.with_name("hostile.zip")
    with zipfile.ZipFile(packed) as source, zipfile.ZipFile(target, "w") as opened:
        for entry in source.infolist():
            if entry.filename != without:
                opened.writestr(entry, source.read(entry))
        change(opened)
    return target


def test_names_that_lead_elsewhere_are_left_alone(packed: Path, tmp_path: Path) -> None:
    def climb(opened: zipfile.ZipFile) -> None:
        for name in ("../../evil.py", "/etc/evil", "objects/../evil.json", "objects/aa/b.json", "rows.jsonl/x"):
            opened.writestr(name, "evil")

    before = sorted(tmp_path.rglob("*"))
    results = open_results(rewritten(packed, climb))
    assert len(results.rows) == 2
    assert "5 files" in results.notices[0]
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "hostile.zip"])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(packed: Path) -> None:
    with pytest.raises(PipebenchError, match=r"rows\.jsonl is there twice"):
        open_results(rewritten(packed, lambda opened: opened.writestr("rows.jsonl", "")))


def test_a_bomb_is_refused_before_it_goes_off(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = rewritten(packed, lambda opened: opened.writestr("big", bytes(10**6), zipfile.ZIP_DEFLATED))
    monkeypatch.setattr(archive, "MOST_MEMBERS_BYTES", 10**6)
    with pytest.raises(PipebenchError, match="holds too much"):
        open_results(hostile)
    monkeypatch.undo()
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    with pytest.raises(PipebenchError, match="holds too much"):
        open_results(packed)
    monkeypatch.undo()
    monkeypatch.setattr(archive, "MOST_PACKED_ROWS_BYTES", 100)
    with pytest.raises(PipebenchError, match=r"rows\.jsonl is too large"):
        open_results(packed)


def test_a_size_that_lies_gives_no_more_than_it_says(packed: Path) -> None:
    """The directory says 10 bytes, the file unpacks to more."""
    data = bytearray(packed.read_bytes())
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"rows.jsonl"))
    struct.pack_into("<L", data, at + 24, 10)
    packed.write_bytes(data)
    with suppress(PipebenchError):
        assert open_results(packed).rows == ()


def test_a_packed_store_of_a_newer_version_is_refused(packed: Path) -> None:
    newer = json.dumps({"pipebench": "store", "version": 9, "content": {}})
    hostile = rewritten(packed, lambda opened: opened.writestr("store.json", newer), without="store.json")
    with pytest.raises(PipebenchError, match=r"version 9 .* version 1"):
        open_results(hostile)
    with pytest.raises(PipebenchError, match=r"not a packed store: it has no store\.json"):
        open_results(rewritten(packed, lambda opened: None, without="store.json"))


def test_the_rows_of_compare_are_read(tmp_path: Path) -> None:
    row = stored(1, plan_id=digest(PLAN), schedule_id=digest(SCHEDULE)).row
    file = tmp_path / "rows.json"
    bare = msgspec.json.encode({"rows": [row], "cached": []})
    for data in (encode("rows", Rows(rows=(row,))), bare):
        file.write_bytes(data)
        results = open_results(file)
        assert (results.rows, results.stored) == ((row,), ())
        with pytest.raises(PipebenchError, match="has no plan"):
            results.behind.plan(digest(PLAN))


def test_a_file_in_place_of_a_folder_is_named_with_who_takes_it(store: Store, tmp_path: Path) -> None:
    packed, cluster_file, other = tmp_path / "packed.zip", tmp_path / "c.json", tmp_path / "config.json"
    pack(store.path, packed)
    cluster_file.write_text('{"pipebench":"cluster","version":1,"content":{}}')
    other.write_text('{"model_type":"llama"}')
    for path, what, remedy in (
        (packed, "is a packed store", "unpack it first: python -m zipfile"),
        (cluster_file, "holds a cluster, not a store", "compare --cluster"),
        (other, "is a file, not a store", "give the folder of a store"),
    ):
        with pytest.raises(PipebenchError, match=what) as error:
            pack(path, tmp_path / "x.zip")
        assert remedy in (error.value.hint or "")
        with pytest.raises(PipebenchError, match=what):
            stores_at([path])


def test_what_holds_no_results(store: Store, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"pipebench":"cluster","version":1,"content":{}}')
    for path, reason in (
        (tmp_path, "is not a store"),
        (tmp_path / "none", "there are no results"),
        (tmp_path / "plan.json", "holds a cluster, not rows"),
        (store.path / "rows.jsonl", "is a part of a store"),
        (store.path / "store.json", "is a part of a store"),
    ):
        with pytest.raises(PipebenchError, match=reason) as error:
            open_results(path)
        assert "\n" not in str(error.value)


def test_the_command(store: Store, tmp_path: Path) -> None:
    # As the group has it: click keeps a command's help option from its first call on.
    extra = {"standalone_mode": False, "help_option_names": ["-h", "--help"]}
    done = CliRunner().invoke(command, [str(store.path), "-o", str(tmp_path / "r.zip")], **extra)
    assert done.return_value == 0
    assert "3 rows, 4 objects" in done.output
    assert len(open_results(tmp_path / "r.zip").rows) == 2
    done = CliRunner().invoke(command, [str(tmp_path / "no"), "-o", str(tmp_path / "s.zip")], **extra)
    assert isinstance(done.exception, PipebenchError)
