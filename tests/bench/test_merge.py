"""Stores joined: nothing lost, nothing twice, conflicts and what is missing named; hostile ones do no harm."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.merge import merge, stores_at
from pipebench.bench.store import Store, StoredRow
from pipebench.bench.store.sweep_parts import SHARDS, SweepPart, joined_parts, read_parts
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import digest
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored


def store(folder: Path, *rows: StoredRow, again: bool = False) -> Path:
    opened = Store.open(folder)
    for row in rows:
        opened.append(row, PROBLEM, PLAN, SCHEDULE, replace=again)
    return folder


def shard(folder: Path, keys: list[str], numbers: list[int], number: int, *rows: StoredRow) -> Path:
    Store.open(folder).enter_shard(SweepPart.of(keys, numbers, number, max(numbers)))
    return store(folder, *rows)


def rows(folder: Path) -> list[StoredRow]:
    return Store.open(folder, create=False, writable=False).rows()


def slow(number: int, **row: Any) -> StoredRow:
    """The same result as `stored`, in another time."""
    return stored(number, search_cpu_s=9.0, elapsed_s=10.0, notices=("ran beside others",), **row)


def test_rows_of_all_stores_once(tmp_path: Path) -> None:
    one = store(tmp_path / "one", stored(1), stored(2))
    other = store(tmp_path / "other", slow(2), stored(3))
    done = merge([one, other], tmp_path / "all")
    assert (done.records, done.equal, done.conflict_count, done.objects, done.missing) == (3, 1, 0, 3, ())
    assert [each.row.repetition for each in rows(tmp_path / "all")] == [1, 2, 3]
    assert rows(tmp_path / "all")[1].row.search_cpu_s is None  # that of the first store
    merged = Store.open(tmp_path / "all")
    assert merged.problem(PROBLEM.problem_id) == PROBLEM
    assert merged.plan(digest(PLAN)) == PLAN
    assert not merged.notices


@settings(max_examples=25)
@given(st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=4))
def test_the_union_whatever_the_stores(tmp_path_factory: pytest.TempPathFactory, held: list[set[int]]) -> None:
    folder = tmp_path_factory.mktemp("union")
    places = [store(folder / str(place), *map(stored, sorted(each))) for place, each in enumerate(held)]
    done = merge(places, folder / "all")
    found = [each.row.repetition for each in rows(folder / "all")]
    assert sorted(found) == sorted(set().union(*held))
    assert done.equal == sum(map(len, held)) - len(found)


def test_a_conflict_is_named_and_nothing_written(tmp_path: Path) -> None:
    one = store(tmp_path / "one", stored(1, simulated_s=1.0), stored(2))
    other = store(tmp_path / "other", stored(1, status="timeout"))
    done = merge([one, other], tmp_path / "all")
    assert not done.written
    assert not (tmp_path / "all").exists()
    (conflict,) = done.conflicts
    assert (conflict.first, conflict.second) == (str(one), str(other))
    assert {each.field: (each.before, each.after) for each in conflict.changes} == {
        "status": ("ok", "timeout"),
        "simulated_s": (1.0, None),
    }


@pytest.mark.parametrize(
    ("prefer", "times", "counts"),
    [
        ("first", ("2025", "2026"), "ok"),
        ("newest", ("2025", "2026"), "timeout"),
        ("newest", ("2026", "2025"), "ok"),
    ],
)
def test_who_counts_can_be_said(tmp_path: Path, prefer: Any, times: tuple[str, str], counts: str) -> None:
    made = [
        replace(row, finished_at=f"{year}-01-01T00:00:00.000+00:00")
        for row, year in zip((stored(1), stored(1, status="timeout")), times, strict=True)
    ]
    places = [store(tmp_path / str(place), row) for place, row in enumerate(made)]
    done = merge(places, tmp_path / "all", prefer)
    assert done.written
    assert done.conflict_count == 1
    merged = Store.open(tmp_path / "all")
    assert merged.latest()[made[0].key].row.status == counts
    assert {each.row.status for each in merged.rows()} == {"ok", "timeout"}  # nothing is lost


def test_replaced_rows_come_along(tmp_path: Path) -> None:
    one = store(tmp_path / "one", stored(1, status="crashed"), stored(2))
    store(one, stored(1), again=True)
    other = store(tmp_path / "other", stored(1), stored(3))
    done = merge([one, other], tmp_path / "all")
    assert done.conflict_count == 0  # the last row of a key counts
    assert [(each.row.repetition, each.row.status) for each in rows(tmp_path / "all")] == [
        (2, "ok"),
        (1, "crashed"),
        (1, "ok"),
        (3, "ok"),
    ]
    merge([other, one], tmp_path / "turned")  # of a row that counts elsewhere nothing that it replaced is kept
    assert [(each.row.repetition, each.row.status) for each in rows(tmp_path / "turned")] == [
        (1, "ok"),
        (3, "ok"),
        (2, "ok"),
    ]


def test_shards_stand_in_the_order_of_the_sweep_and_missing_ones_are_named(tmp_path: Path) -> None:
    made = [stored(number) for number in range(6)]
    keys, numbers = [row.key for row in made], [2, 1, 3, 1, 3, 2]
    places = [
        shard(
            tmp_path / str(number),
            keys,
            numbers,
            number,
            *(row for row, of in zip(made, numbers, strict=True) if of == number),
        )
        for number in (1, 2, 3)
    ]
    done = merge(places, tmp_path / "all")
    assert done.missing == ()
    assert [each.key for each in rows(tmp_path / "all")] == keys
    assert not (tmp_path / "all" / SHARDS).exists()  # it is no part any more
    done = merge([places[2], places[0]], tmp_path / "two")
    assert done.missing == ("shard 2 of 3 is missing",)
    assert [each.key for each in rows(tmp_path / "two")] == [keys[place] for place in (1, 2, 3, 4)]
    done = merge([tmp_path / "two", places[1]], tmp_path / "later")
    assert done.missing == ()
    assert [each.key for each in rows(tmp_path / "later")] == keys


def test_missing_trials_of_a_shard_are_counted(tmp_path: Path) -> None:
    made = [stored(number) for number in range(4)]
    keys = [row.key for row in made]
    one = shard(tmp_path / "one", keys, [1, 1, 1, 2], 1, made[0])
    done = merge([one], tmp_path / "all")
    assert done.missing == (
        "shard 2 of 2 is missing",
        f"{one}: 2 of 3 trials of shard 1 of 2 are missing: run it again",
    )
    (part,) = read_parts(tmp_path / "all")
    assert (part.numbers, part.trials, len(part.keys)) == ((1,), 4, 3)


def test_shards_of_different_sweeps_are_said(tmp_path: Path) -> None:
    made = [stored(number) for number in range(3)]
    one = shard(tmp_path / "one", [made[0].key, made[1].key], [1, 2], 1, made[0])
    other = shard(tmp_path / "other", [made[0].key, made[2].key], [1, 2], 2, made[2])
    done = merge([one, other], tmp_path / "all")
    assert any("parts of 2 sweeps" in notice for notice in done.notices)
    assert len(done.missing) == 2
    assert len(read_parts(tmp_path / "all")) == 2


def test_a_store_is_one_shard(tmp_path: Path) -> None:
    keys = [stored(number).key for number in range(2)]
    place = shard(tmp_path / "one", keys, [1, 2], 1)
    shard(place, keys, [1, 2], 1)
    with pytest.raises(PipebenchError, match="is shard 1 of 2, not shard 2 of 2"):
        shard(place, keys, [1, 2], 2)
    with pytest.raises(PipebenchError, match="is shard 1 of 2, not shard 1 of 3"):
        shard(place, keys, [1, 3], 1)
    (place / SHARDS).write_bytes(b"{")
    shard(place, keys, [1, 2], 1)  # a damaged file is written anew
    assert read_parts(place)[0].numbers == (1,)


def test_parts_join_whatever_their_order() -> None:
    keys = [str(number) for number in range(5)]
    parts = [SweepPart.of(keys, [1, 2, 3, 1, 2], number, 3) for number in (3, 1, 2)]
    (whole,) = joined_parts(parts)
    assert (whole.keys, whole.places, whole.absent) == (tuple(keys), tuple(range(5)), ())


def test_damaged_lines_are_named_and_the_rest_kept(tmp_path: Path) -> None:
    keys = [stored(number).key for number in range(3)]
    one = shard(tmp_path / "one", keys, [1, 1, 1], 1, *map(stored, range(3)))
    lines = (one / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (one / "rows.jsonl").write_bytes(lines[0] + lines[1].replace(b"mine", b"mone") + lines[2] + lines[0][:50])
    done = merge([one], tmp_path / "all")
    assert any("line 2 is damaged" in notice for notice in done.notices)
    assert any("torn" in notice for notice in done.notices)
    assert done.missing == (f"{one}: 1 of 3 trials of shard 1 of 1 are missing: run it again",)
    assert [each.key for each in rows(tmp_path / "all")] == [keys[0], keys[2]]


def test_a_damaged_object_is_taken_from_the_store_where_it_is_whole(tmp_path: Path) -> None:
    one, other = store(tmp_path / "one", stored(1)), store(tmp_path / "other", stored(2))
    (broken,) = (one / "objects").rglob(f"{digest(PLAN)}.json")
    broken.write_bytes(broken.read_bytes().replace(b"op0", b"op7"))
    merge([one, other], tmp_path / "all")
    assert Store.open(tmp_path / "all").plan(digest(PLAN)) == PLAN


def test_a_missing_object_is_said_and_a_link_not_followed(tmp_path: Path) -> None:
    one = store(tmp_path / "one", stored(1))
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (plan,) = (one / "objects").rglob(f"{digest(PLAN)}.json")
    plan.unlink()
    plan.symlink_to(secret)
    (problem,) = (one / "objects").rglob(f"{PROBLEM.problem_id}.json")
    problem.unlink()
    os.mkfifo(problem)
    done = merge([one], tmp_path / "all")
    assert len(done.notices) == 2
    assert all("is missing, or no file" in notice for notice in done.notices)
    assert done.objects == 1
    assert not list((tmp_path / "all").rglob(f"{digest(PLAN)}.json"))


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b'{"pipebench":"shards","version":2,"content":[]}',
        b'{"pipebench":"shards","version":1,"content":[{"sweep":"a","trials":1,"count":2,"numbers":[3],"keys":[],"places":[]}]}',
        b'{"pipebench":"shards","version":1,"content":[{"sweep":"a","trials":0,"count":2,"numbers":[1],"keys":["a"],"places":[0]}]}',
        b"[" * 100_000,
        b'{"pipebench":"shards","version":1,"content":' + b"[" * 60 + b"]" * 60 + b"}",
    ],
)
def test_a_hostile_list_of_shards_is_a_warning(tmp_path: Path, content: bytes) -> None:
    one = store(tmp_path / "one", stored(1))
    (one / SHARDS).write_bytes(content)
    done = merge([one], tmp_path / "all")
    assert len(done.notices) == 1
    assert SHARDS in done.notices[0]
    assert done.records == 1


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    one = store(tmp_path / "one", stored(1))
    (tmp_path / "file").write_text("")
    full = store(tmp_path / "full")
    cases: tuple[tuple[list[str | Path], str, str], ...] = (
        ([tmp_path / "none"], "all", "no store"),
        ([tmp_path / "file"], "all", "not a store"),
        (["", one], "all", "an empty name"),
        ([one, one], "all", "named twice"),
        ([one, tmp_path / "one" / ".." / "one"], "all", "named twice"),
        ([one], "full", "already"),
        ([one], "file", "already"),
        ([one], "one/all", "inside a store"),
    )
    for sources, target, words in cases:
        with pytest.raises(PipebenchError, match=words):
            merge(sources, tmp_path / target)
    assert rows(full) == []
    assert sorted(os.listdir(tmp_path)) == ["file", "full", "one"]


def test_a_folder_of_stores_stands_for_these_by_number(tmp_path: Path) -> None:
    for number in (2, 10, 1):
        store(tmp_path / f"shard-{number}-of-10")
    (tmp_path / "log.txt").write_text("")
    assert [each.name for each in stores_at([tmp_path])] == [f"shard-{number}-of-10" for number in (1, 2, 10)]


def test_odd_names_are_no_error_of_ours(tmp_path: Path) -> None:
    """A digit that is no decimal, a name that is too long, a link to itself."""
    (tmp_path / "packed.zip").write_bytes(b"PK")
    with pytest.raises(PipebenchError, match="is a packed store") as error:
        merge([tmp_path / "packed.zip"], tmp_path / "all")
    assert f"unpack it first: python -m zipfile -e {tmp_path / 'packed.zip'} packed;" in str(error.value.hint)
    one = store(tmp_path / "shards" / "²", stored(1))
    assert stores_at([one.parent]) == [one]
    with pytest.raises(PipebenchError, match="store"):
        merge([tmp_path / ("x" * 300)], tmp_path / "all")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for places, target in (([loop], tmp_path / "all"), ([one], loop / "all"), ([one], loop)):
        with pytest.raises(PipebenchError):
            merge(places, target)


@pytest.mark.parametrize("limit", ["MOST_MERGED_BYTES", "MOST_ROWS_BYTES"])
def test_more_bytes_than_a_store_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    one = store(tmp_path / "one", stored(1))
    monkeypatch.setattr(f"pipebench.bench.merge.{limit}", 100)
    with pytest.raises(PipebenchError, match="together") as error:
        merge([one], tmp_path / "all")
    assert error.value.hint == "merge fewer stores"
    assert [each.name for each in tmp_path.iterdir()] == ["one"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = store(tmp_path / "one", stored(1))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(PipebenchError, match="no space left on device"):
        merge([one], tmp_path / "all")
    assert os.listdir(tmp_path) == ["one"]
