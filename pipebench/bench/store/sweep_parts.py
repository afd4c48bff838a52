"""What a store says of the sweep that it is a part of: which shards, and which trials these have."""

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from pipebench.documents.decoding import MALFORMED, bounded_json
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_SHARDS
from pipebench.domain.value import Value, digest, require
from pipebench.formats.files import read_file, write_file

SHARDS, KIND, VERSION = "shards.json", "shards", 1
MOST_SWEEPS = 100
MOST_NAMED = 20
"""Numbers of shards that a message names."""
Number = Annotated[int, Meta(ge=1, le=MOST_SHARDS)]


class SweepPart(Value, frozen=True, kw_only=True):
    """Some of the shards of one sweep.

    sweep: the hash of the keys of all its trials, in the order in which one machine runs them.
    trials: how many these are.
    count: how many shards the sweep has. numbers: which of them are here.
    keys: those of the trials of these shards. places: where each stands in the order of the sweep, from 0.
    """

    sweep: str
    trials: Annotated[int, Meta(ge=0)]
    count: Number
    numbers: tuple[Number, ...]
    keys: tuple[str, ...]
    places: tuple[Annotated[int, Meta(ge=0)], ...]

    def __post_init__(self) -> None:
        require(len(self.keys) == len(self.places) <= self.trials, "it has other trials than the sweep")
        require(all(number <= self.count for number in self.numbers), "it has a shard that the sweep has not")

    @classmethod
    def of(cls, keys: Sequence[str], shards: Sequence[int], number: int, count: int) -> Self:
        """The part that is one shard. keys, shards: of all trials of the sweep, in its order."""
        shard_of = dict(zip(keys, shards, strict=True))
        mine = [(place, key) for place, (key, shard) in enumerate(shard_of.items()) if shard == number]
        return cls(
            sweep=digest(tuple(shard_of)),
            trials=len(shard_of),
            count=count,
            numbers=(number,),
            keys=tuple(key for _, key in mine),
            places=tuple(place for place, _ in mine),
        )

    @property
    def words(self) -> str:
        """Which shards they are: `shard 3 of 8`, `shards 1, 2 of 8`."""
        return shard_words(self.numbers, self.count)

    @property
    def absent(self) -> tuple[int, ...]:
        """The shards of the sweep that are not here."""
        return tuple(sorted(set(range(1, self.count + 1)) - set(self.numbers)))


def shard_words(numbers: Collection[int], count: int) -> str:
    """These shards in words."""
    named = ", ".join(map(str, sorted(numbers)[:MOST_NAMED])) + (", …" if len(numbers) > MOST_NAMED else "")
    return f"shard{'' if len(numbers) == 1 else 's'} {named} of {count}"


class _Document(msgspec.Struct):
    pipebench: str
    version: int
    content: msgspec.Raw


def read_parts(folder: Path) -> tuple[SweepPart, ...]:
    """The parts of sweeps that a store is for; none where it does not say.

    Raises PipebenchError where the file is damaged, too large or of another version.
    """
    file = folder / SHARDS
    if not os.path.lexists(file):
        return ()
    where = f"store {str(folder)!r}: its {SHARDS}"
    data = bounded_json(read_file(file), where)
    try:
        document = msgspec.json.decode(data, type=_Document)
        if (document.pipebench, document.version) != (KIND, VERSION):
            raise PipebenchError(
                f"{where} is of another version, or no list of shards", "install a newer pipebench"
            )
        parts = msgspec.json.decode(document.content, type=tuple[SweepPart, ...])
    except MALFORMED as error:
        raise PipebenchError(
            f"{where} is damaged: {error}", "run the shard again: it is written anew, and no row is run twice"
        ) from None
    if len(parts) > MOST_SWEEPS:
        raise PipebenchError(f"{where} names {len(parts)} sweeps, at most {MOST_SWEEPS} are read")
    return parts


def encode_parts(parts: Sequence[SweepPart]) -> bytes:
    """The bytes of the file."""
    return msgspec.json.encode({"pipebench": KIND, "version": VERSION, "content": parts}) + b"\n"


def enter_shard(folder: Path, part: SweepPart) -> None:
    """Say in a store which shard it is, before its trials run; the caller holds the store.

    After a change of code or of the suite the same shard is entered anew: the rows of before stay.
    Raises PipebenchError where the store is another shard.
    """
    try:
        before = read_parts(folder)
    except PipebenchError:
        before = ()  # a damaged one is written anew
    for other in before:
        if (other.count, other.numbers) != (part.count, part.numbers):
            raise PipebenchError(
                f"store {str(folder)!r} is {other.words}, not {part.words}", "give each shard a store of its own"
            )
    if before != (part,):
        write_file(folder / SHARDS, encode_parts((part,)))


def joined_parts(parts: Iterable[SweepPart]) -> tuple[SweepPart, ...]:
    """One part for each sweep and number of shards, in the order in which they first occur."""
    found: dict[tuple[str, int, int], list[SweepPart]] = {}
    for part in parts:
        found.setdefault((part.sweep, part.trials, part.count), []).append(part)
    return tuple(map(_joined, found.values()))


def _joined(same: Sequence[SweepPart]) -> SweepPart:
    places = dict(
        sorted({place: key for part in same for key, place in zip(part.keys, part.places, strict=True)}.items())
    )
    return SweepPart(
        sweep=same[0].sweep,
        trials=same[0].trials,
        count=same[0].count,
        numbers=tuple(sorted({number for part in same for number in part.numbers})),
        keys=tuple(places.values()),
        places=tuple(places),
    )
