"""Zips, gzipped files and lines of JSON made wrong from outside and inside."""

import gzip
import random
import warnings
import zipfile
from collections.abc import Callable
from io import BytesIO

from pipebench.bench.store.lines import with_checksum
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.mutate_json import mutate_json

NAMES = ("store.json", "rows.jsonl", "../x", "/x", "objects/", "A" * 2000, "objects/00/00.json", "٣", "a\x00b")
EPOCH = (1980, 1, 1, 0, 0, 0)


def mutate_lines_of_json(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """One line changed as JSON or as bytes; lines doubled, left out, in another order, without an end."""
    lines = data.splitlines(keepends=True) or [b""]
    at = draw.randrange(len(lines))
    kind = draw.randrange(8)
    if kind < 5:
        end = b"\n" if draw.random() < 0.9 else b""
        lines[at] = mutate_json(lines[at], draw) + end
        if end and draw.random() < 0.7:  # an edit that says nothing of itself
            lines[at] = with_checksum(lines[at])
    elif kind == 5:
        lines[at] = mutate_bytes(lines[at], other, draw)
    elif kind == 6:
        lines[at : at + 1] = [lines[at]] * draw.choice((0, 2, 30))
    else:
        draw.shuffle(lines)
    return b"".join(lines)


def mutate_zip(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """A zip with one member changed, renamed, doubled, added or left out; or its bytes changed."""
    if draw.random() < 0.3:
        return mutate_bytes(data, other, draw)
    with zipfile.ZipFile(BytesIO(data)) as opened:
        members = [(name, opened.read(name)) for name in opened.namelist()]
    at = draw.randrange(len(members))
    name, content = members[at]
    kind = draw.randrange(8)
    if kind < 4:
        lined = name.endswith(".jsonl")
        members[at] = (name, mutate_lines_of_json(content, other, draw) if lined else mutate_json(content, draw))
    elif kind == 4:
        members[at] = (draw.choice(NAMES), content)
    elif kind == 5:
        members.insert(draw.randint(0, len(members)), (name, mutate_bytes(content, other, draw)))
    elif kind == 6:
        del members[at]
    else:
        members.append((draw.choice(NAMES), other))
    return write_zip(members, draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)))


def write_zip(members: list[tuple[str, bytes]], way: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these members, the same bytes each time."""
    made = BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", way) as opened:
        warnings.simplefilter("ignore")  # of two members with one name
        for name, content in members:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = way
            opened.writestr(entry, content)
    return made.getvalue()


def mutate_gzip(data: bytes, other: bytes, draw: random.Random, inside: Callable[[bytes], bytes]) -> bytes:
    """A gzipped file: changed inside, or its bytes."""
    if draw.random() < 0.5:
        return mutate_bytes(data, other, draw)
    return gzip.compress(inside(gzip.decompress(data)), mtime=0)
