"""Stores joined to one: records by key, equal ones once, conflicts named, missing shards and trials said."""

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from pipebench.bench.difference.results import EXACT
from pipebench.bench.difference.structure import Change
from pipebench.bench.store.access import storing
from pipebench.bench.store.folder import TRIALS, Store
from pipebench.bench.store.journal import (
    LOCK,
    MANIFEST,
    OBJECTS,
    Journal,
    Record,
    StoreInfo,
    encode_manifest,
    is_kind,
)
from pipebench.bench.store.lines import PlacedLine, checked_line, sync_folder
from pipebench.bench.store.mistaken import no_folder
from pipebench.bench.store.objects import ObjectFolder, Objects, object_name
from pipebench.bench.store.stored_rows import StoredRow, now
from pipebench.bench.store.sweep_parts import (
    SHARDS,
    SweepPart,
    encode_parts,
    joined_parts,
    read_parts,
    shard_words,
)
from pipebench.documents.decoding import collector_paused
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LARGEST_FILE_BYTES, MIB, MOST_MERGED_BYTES, MOST_MERGED_STORES, MOST_ROWS_BYTES
from pipebench.system.files import open_regular
from pipebench.system.scratch import draft_beside, hold

Preference = Literal["first", "newest"]
MOST_NAMED = 20
"""Conflicts, objects and trials that are named; of more their number is said."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A trial with different results in two stores, apart from times. row: of the first store."""

    first: str
    second: str
    row: StoredRow
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """What was joined. records: trials, or nights; kind: what they are, in words. objects: problems, plans,
    schedules and scripts.

    equal: records that another store has too. conflicts: the first of them; conflict_count: how many.
    missing: a line for each shard, or part of one, that is not there.
    notices: what is damaged, or odd. written: whether there is a store now.
    """

    records: int
    kind: str
    objects: int
    equal: int
    conflicts: tuple[Conflict, ...]
    conflict_count: int
    missing: tuple[str, ...]
    notices: tuple[str, ...]
    written: bool


class _Line(NamedTuple):
    """Where the line of a record is, and what is compared of it. result: digest of what no machine changes."""

    store: int
    start: int
    line_bytes: int
    finished_at: str
    result: bytes


_RESULT = attrgetter(*EXACT)


@dataclass(slots=True)
class _Joined:
    """The records that are kept. chosen: by key; before: lines of the same key that it replaces, in order."""

    chosen: dict[str, _Line] = field(default_factory=dict)
    before: dict[str, list[_Line]] = field(default_factory=dict)
    equal: int = 0
    conflicts: list[tuple[_Line, _Line]] = field(default_factory=list)


def stores_at(paths: Sequence[str | Path]) -> list[Path]:
    """The stores of these folders; a folder that is none but holds some stands for these, by name.

    Raises PipebenchError where there is no store, one is named twice, or there are too many.
    """
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        if not str(given):
            raise PipebenchError("a store has an empty name", "name its folder, or '.'")
        if os.path.isfile(path):
            raise no_folder(path, "store")
        inside = [] if os.path.exists(path / MANIFEST) else _inside(path)
        found += [each for each in inside if os.path.isfile(each / MANIFEST)] or [path]
    real = [os.path.realpath(each) for each in found]
    twice = next((each for each, name in zip(found, real, strict=True) if real.count(name) > 1), None)
    if twice is not None:
        raise PipebenchError(f"{str(twice)!r} is named twice", "name each store once")
    if len(found) > MOST_MERGED_STORES:
        raise PipebenchError(
            f"{len(found)} stores, at most {MOST_MERGED_STORES} are joined", "join them in groups"
        )
    return found


def _inside(folder: Path) -> list[Path]:
    """What is in a folder, by name; nothing where it cannot be listed, which is said when it is opened."""
    try:
        return sorted(folder.iterdir(), key=_by_number)
    except OSError:
        return []


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Names with numbers in the order of these: shard-2 before shard-10. Every second part is a number."""
    parts = re.split(r"([0-9]{1,9})", path.name)
    return [(int(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts)]


def merge(
    paths: Sequence[str | Path],
    target: str | Path,
    prefer: Preference | None = None,
    kinds: Sequence[type[Journal[Any]]] = (Store,),
) -> MergeSummary:
    """Write a new store with the records of all these stores, and the objects that they refer to.

    kinds: what they may be; all are of one kind.

    A row that several stores have, equal apart from times, comes from the first. Where results differ nothing is
    written, unless `prefer` says whose row counts: that of the store named first, or the newest; the others stay
    before it in the file. Rows that were replaced inside their own store come along, unless a store before it has
    the trial. Rows of a sweep in shards stand in the order in which one machine would have run them, others as
    they are named.
    The store is there as a whole or not at all. The others are only read.
    Raises PipebenchError: a store cannot be read, there is something at the target, or it cannot be written.
    """
    places = stores_at(paths)
    target = Path(target)
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise PipebenchError(f"there is something at {str(target)!r} already", "give --out a new name")
    real = Path(os.path.realpath(target))
    if any(real.is_relative_to(os.path.realpath(place)) for place in places):
        raise PipebenchError(f"{str(target)!r} is inside a store that is merged", "give --out a name outside it")
    opened = next((each for each in kinds if is_kind(places[0], each.kind)), kinds[0])
    notices: list[str] = []
    parts: list[tuple[Path, SweepPart]] = []
    joined, objects = _Joined(), dict[tuple[str, str], list[int]]()
    for number, place in enumerate(places):
        parts += [(place, part) for part in _parts(place, notices)]
        store = opened.unread(place)
        with collector_paused():
            _take_store(joined, _latest(store, number, joined, objects), prefer)
        notices += store.notices
    named = [_conflict(places, *each) for each in joined.conflicts[:MOST_NAMED]]
    written = not joined.conflicts or prefer is not None
    missing = list(_missing(parts, joined))
    notices += _several_sweeps(parts)
    count = 0
    if written:
        whole = joined_parts(part for _, part in parts)
        lines = _ordered(joined, whole)
        count = _write(target, places, opened, lines, objects, whole if missing else (), notices)
    return MergeSummary(
        records=len(joined.chosen),
        kind=opened.kind.plural,
        objects=count,
        equal=joined.equal,
        conflicts=tuple(named),
        conflict_count=len(joined.conflicts),
        missing=tuple(missing),
        notices=tuple(notices),
        written=written,
    )


def _parts(place: Path, notices: list[str]) -> tuple[SweepPart, ...]:
    try:
        return read_parts(place)
    except PipebenchError as error:
        notices.append(str(error))
        return ()


def _latest(
    store: Journal[Record], number: int, joined: _Joined, objects: dict[tuple[str, str], list[int]]
) -> dict[str, _Line]:
    """The last line of each key of a store; those before it are kept as such, unless another store has the key."""
    latest: dict[str, _Line] = {}
    for placed in store.scan():
        stored = placed.value
        line = _line_of(placed, number)
        if stored.key in latest and stored.key not in joined.chosen:
            joined.before.setdefault(stored.key, []).append(latest[stored.key])
        latest[stored.key] = line
        for reference in store.kind.references(stored):
            stores = objects.setdefault(reference, [])
            if not stores or stores[-1] != number:
                stores.append(number)
    return latest


def _line_of(placed: PlacedLine[Record], number: int) -> _Line:
    stored, result = placed.value, b""  # the key of other records covers all that they say
    if isinstance(stored, StoredRow):
        compared = msgspec.json.encode(_RESULT(stored.row), order="sorted")
        result = hashlib.blake2b(compared, digest_size=16).digest()
    return _Line(number, placed.start, placed.line_bytes, stored.finished_at, result)


def _take_store(joined: _Joined, latest: dict[str, _Line], prefer: Preference | None) -> None:
    """Add the rows of the next store."""
    for key, line in latest.items():
        had = joined.chosen.get(key)
        if had is None:
            joined.chosen[key] = line
        elif had.result == line.result:
            joined.equal += 1
        else:
            joined.conflicts.append((had, line))
            wins = prefer == "newest" and line.finished_at > had.finished_at
            lost = had if wins else line
            joined.before.setdefault(key, []).append(lost)
            joined.chosen[key] = line if wins else had


def _conflict(places: Sequence[Path], one: _Line, other: _Line) -> Conflict:
    first, second = (_decoded(places[line.store], line) for line in (one, other))
    changes = tuple(
        Change(field=name, before=before, after=after)
        for name, before, after in zip(EXACT, _RESULT(first.row), _RESULT(second.row), strict=True)
        if before != after
    )
    return Conflict(str(places[one.store]), str(places[other.store]), first, changes)


def _decoded(place: Path, line: _Line) -> StoredRow:
    """The row of a trial whose line was read before."""
    with open_regular(place / TRIALS.file) as file:
        data = os.pread(file.fileno(), line.line_bytes, line.start)
    without = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    without.pop("checksum", None)
    return msgspec.json.decode(msgspec.json.encode(without), type=StoredRow)


def _missing(parts: Sequence[tuple[Path, SweepPart]], joined: _Joined) -> Iterator[str]:
    """What the stores say of their sweeps, against what is there."""
    whole = joined_parts(part for _, part in parts)
    for part in whole:
        if absent := part.absent:
            of = f" (sweep {part.sweep[:12]})" if len(whole) > 1 else ""
            verb = "is" if len(absent) == 1 else "are"
            yield f"{shard_words(absent, part.count)} {verb} missing{of}"
    for place, part in parts:
        lacking = sum(key not in joined.chosen for key in part.keys)
        if lacking:
            yield f"{place}: {lacking} of {len(part.keys)} trials of {part.words} are missing: run it again"


def _several_sweeps(parts: Sequence[tuple[Path, SweepPart]]) -> Iterator[str]:
    sweeps: dict[str, list[str]] = {}
    for place, part in parts:
        sweeps.setdefault(part.sweep, []).append(str(place))
    if len(sweeps) > 1:
        yield f"the stores are parts of {len(sweeps)} sweeps: their suites, options, code or packages differ"
        for sweep, names in sweeps.items():
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            yield f"sweep {sweep[:12]}: {', '.join(names[:MOST_NAMED])}{more}"


def _ordered(joined: _Joined, parts: Iterable[SweepPart]) -> list[_Line]:
    """All lines in the order of the file: by sweep, then as the stores have them; replaced ones before theirs."""
    order: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        for key, place in zip(part.keys, part.places, strict=True):
            order.setdefault(key, (number, place))
    last = MOST_MERGED_STORES, 0
    keys = sorted(joined.chosen, key=lambda key: (order.get(key, last), joined.chosen[key][:2]))
    return [line for key in keys for line in (*joined.before.get(key, ()), joined.chosen[key])]


def _write(
    target: Path,
    places: Sequence[Path],
    opened: type[Journal[Any]],
    lines: Sequence[_Line],
    objects: dict[tuple[str, str], list[int]],
    left: Sequence[SweepPart],
    notices: list[str],
) -> int:
    """The new store beside its place, then at it; gives how many objects it has. All is on the disk then.

    left: what it says of sweeps of which something is missing.
    """
    size = sum(line.line_bytes for line in lines)
    if size > MOST_ROWS_BYTES:
        raise PipebenchError(
            f"the {opened.kind.plural} have {size} bytes together, a store at most {MOST_ROWS_BYTES}",
            "merge fewer stores",
        )
    with storing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = draft_beside(target)
        beside.mkdir()
        handle = os.open(beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            hold(handle)
            count = _copy_objects(beside / OBJECTS, places, objects, notices)
            _copy_lines(beside, opened.kind.file, places, lines)
            if left:
                (beside / SHARDS).write_bytes(encode_parts(left))
            (beside / LOCK).touch()
            (beside / MANIFEST).write_bytes(encode_manifest(StoreInfo(made_at=now()), opened.kind))
            os.sync()  # at once: to flush each of a hundred thousand files takes minutes
            os.rename(beside, target)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        finally:
            os.close(handle)
    return count


def _copy_lines(folder: Path, name: str, places: Sequence[Path], lines: Iterable[_Line]) -> None:
    with ExitStack() as stack, open(folder / name, "xb", buffering=MIB) as out:
        opened: dict[int, int] = {}
        for line in lines:
            if line.store not in opened:
                if len(opened) >= MOST_OPEN:
                    stack.close()
                    opened.clear()
                opened[line.store] = stack.enter_context(open_regular(places[line.store] / name)).fileno()
            out.write(checked_line(os.pread(opened[line.store], line.line_bytes, line.start)))


MOST_OPEN = 200
"""Files that are open at once."""


def _copy_objects(
    folder: Path, places: Sequence[Path], objects: dict[tuple[str, str], list[int]], notices: list[str]
) -> int:
    """Copy every object; of one that stores have in different bytes, the first whose content has its hash."""
    folder.mkdir()
    made, lacking, count, total = set[str](), 0, 0, 0
    for (kind, identity), stores in objects.items():
        name = object_name(kind, identity)
        data = _object(kind, identity, [places[number] for number in stores])
        if data is None:
            lacking += 1
            if lacking <= MOST_NAMED:
                notices.append(f"{places[stores[0]]}: its {kind} {identity[:16]} is missing, or no file")
            continue
        total += len(data)
        if total > MOST_MERGED_BYTES:
            raise PipebenchError(
                f"problems, plans and schedules have over {MOST_MERGED_BYTES // 2**30} GiB together",
                "merge fewer stores",
            )
        if name[:2] not in made:
            made.add(name[:2])
            (folder / name[:2]).mkdir()
        with open(folder / name, "xb", buffering=0) as out:
            out.write(data)
        count += 1
    if lacking > MOST_NAMED:
        notices.append(f"{lacking - MOST_NAMED} more objects are missing")
    return count


def _object(kind: str, identity: str, places: Sequence[Path]) -> bytes | None:
    """The bytes of an object, None where no store has it. Where stores differ, those that have the hash."""
    name = object_name(kind, identity)
    found = {data: place for place in reversed(places) if (data := _bytes_of(place / OBJECTS / name)) is not None}
    if len(found) <= 1:
        return next(iter(found), None)
    stores = {data: Objects(ObjectFolder(place / OBJECTS), str(place)) for data, place in reversed(found.items())}
    return next((data for data, store in stores.items() if store.damage(kind, identity) is None), None)


def _bytes_of(file: Path) -> bytes | None:
    """The bytes of a regular file of a size that is read; of a link, or what else there is, None."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE_BYTES:
            return None
        with os.fdopen(os.dup(handle), "rb") as opened:
            return opened.read(LARGEST_FILE_BYTES)
    finally:
        os.close(handle)
