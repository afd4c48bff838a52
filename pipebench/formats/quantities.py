"""Quantities as people write them: 12GB, 16GiB, 12GB/s, 500us. GB is 10^9 bytes, GiB 2^30."""

import re
from fractions import Fraction

from pipebench.domain.errors import PipebenchError

BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
LARGEST = 2**63
_QUANTITY = re.compile(r"(\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?) ?([^\d\s].*)", re.ASCII)


def parse_bytes(text: str) -> int:
    """Bytes above zero, such as '12GB' or '16GiB'; a fraction of a byte is dropped. Raises PipebenchError."""
    number, unit = _split(text, "an amount of memory", "12GB or 16GiB")
    if unit not in BYTES:
        raise _wrong(text, "an amount of memory", "12GB or 16GiB", f"{unit!r} is not one of {', '.join(BYTES)}")
    amount = int(number * BYTES[unit])
    if not 0 < amount < LARGEST:
        raise _wrong(text, "an amount of memory", "12GB or 16GiB", "it must be at least one byte and below 2^63")
    return amount


def parse_bandwidth(text: str) -> float:
    """Bytes a second above zero, such as '12GB/s'. Raises PipebenchError."""
    number, unit = _split(text, "a bandwidth", "12GB/s")
    if not unit.endswith("/s") or unit[:-2] not in BYTES:
        raise _wrong(text, "a bandwidth", "12GB/s", f"{unit!r} is not one of {', '.join(f'{u}/s' for u in BYTES)}")
    rate = number * BYTES[unit[:-2]]
    if not 0 < rate < LARGEST:
        raise _wrong(text, "a bandwidth", "12GB/s", "it must be above zero and below 2^63 bytes a second")
    return float(rate)


def parse_seconds(text: str) -> float:
    """Seconds, zero or more, such as '500us' or '2min'. Raises PipebenchError."""
    number, unit = _split(text, "a time", "500us")
    if unit not in SECONDS:
        raise _wrong(text, "a time", "500us", f"{unit!r} is not one of {', '.join(SECONDS)}")
    seconds = number * SECONDS[unit]
    if seconds >= LARGEST:
        raise _wrong(text, "a time", "500us", "it is too long")
    return float(seconds)


def _split(text: str, what: str, example: str) -> tuple[Fraction, str]:
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise _wrong(text, what, example, "a number and a unit are needed")
    return Fraction(found[1]), found[2]


def _wrong(text: str, what: str, example: str, why: str) -> PipebenchError:
    return PipebenchError(f"{text!r} is not {what}: {why}", f"write it like {example}")
