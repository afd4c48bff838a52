"""Bytes made wrong: flipped, cut, spliced, doubled, with something put in between."""

import random
from collections.abc import Callable

PIECES = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x1b[2J",
    b"\r\n",
    b"\xed\xa0\x80",
    b"nan",
    b"-1",
    b"1e308",
    b"9" * 400,
    b"A" * 2000,
    "٣".encode(),
    b'"',
    b"{",
    b"[",
    b",",
    b"=",
    b"\n\n",
)
"""What is put between bytes."""
MOST_STEPS = 4


def mutate_bytes(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """The data after one to MOST_STEPS changes. other: bytes to splice with."""
    for _ in range(draw.randint(1, MOST_STEPS)):
        data = draw.choice(CHANGES)(data, other, draw)
    return data


def _flip(data: bytes, other: bytes, draw: random.Random) -> bytes:
    if not data:
        return other
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]


def _replace(data: bytes, other: bytes, draw: random.Random) -> bytes:
    at = draw.randint(0, len(data))
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: draw.randint(0, len(data))]


def _remove(data: bytes, other: bytes, draw: random.Random) -> bytes:
    start, end = sorted(draw.randint(0, len(data)) for _ in range(2))
    return data[:start] + data[min(end, start + 200) :]


def _splice(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: draw.randint(0, len(data))] + other[draw.randint(0, len(other)) :]


def _double(data: bytes, other: bytes, draw: random.Random) -> bytes:
    start, end = sorted(draw.randint(0, len(data)) for _ in range(2))
    piece = data[start : min(end, start + 500)]
    return data[:start] + piece * draw.choice((2, 3, 50)) + data[start + len(piece) :]


def _insert(data: bytes, other: bytes, draw: random.Random) -> bytes:
    at = draw.randint(0, len(data))
    return data[:at] + draw.choice(PIECES) + data[at:]


CHANGES: tuple[Callable[[bytes, bytes, random.Random], bytes], ...] = (
    _flip,
    _replace,
    _cut,
    _remove,
    _splice,
    _double,
    _insert,
)
