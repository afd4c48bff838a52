"""Every change of one value of a certificate: of each leaf of its JSON, and of the rows of its lists."""

from collections.abc import Iterator
from typing import Any

from pipebench.certificates.check import check_content
from pipebench.certificates.document import Part, Refused, seal_of, written

Path = tuple[str | int, ...]
WORDS = (
    ("sync", "async"),
    ("full", "half", "delay"),
    ("", "none", "stage", "full"),
    ("split", "round_robin"),
    ("direct", "relay"),
    ("fits", "tight"),
    ("plans of whole operators", "all plans"),
)
"""Texts that stand in the place of each other."""


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The path and the value of every leaf; an empty list or object is one."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    empty = True
    for key, each in inside:
        empty = False
        yield from leaves(each, (*path, key))
    if empty:
        yield path, value


def lists(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """The path and the value of every list that is not empty."""
    if isinstance(value, list) and value:
        yield path, value
    for key, each in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from lists(each, (*path, key))


def others(value: Any) -> Iterator[Any]:
    """Values of the same type that stand in the place of a leaf, and some of other types."""
    if isinstance(value, int):
        yield from (each for each in (value + 1, value - 1, 0, 2 * value, 7, 2**61) if each != value)
    elif isinstance(value, str):
        yield from (each for each in (f"{value}x", value[:-1], "F", "B", "sync", "") if each != value)
        yield from (each for words in WORDS if value in words for each in words if each != value)
    yield from (None, 1.5, [[]], {"x": 1})


def changed(content: Any, path: Path, value: Any) -> Any:
    """The content with another value at a path; what is not on the path is shared."""
    if not path:
        return value
    made = dict(content) if isinstance(content, dict) else list(content)
    made[path[0]] = changed(content[path[0]], path[1:], value)
    return made


def accepted(content: Any) -> bool:
    """Whether the checker accepts the content, as under a new seal; it raises nothing but Refused."""
    try:
        check_content(Part(content, "content"))
    except Refused:
        return False
    return True


def with_old_seal(content: Any, seal: str) -> bytes:
    """A document whose seal is that of another content."""
    return written(content).replace(seal_of(content).encode(), seal.encode())
