"""Arguments are what annotations say, or refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import pytest

from pipebench.domain.arguments import typed
from pipebench.domain.errors import PipebenchError


class Rest(TypedDict, total=False):
    size: int | None


@typed
def given(
    names: Sequence[str] | str,
    count: int = 1,
    *,
    mode: Literal["one", "two"] | None = None,
    place: str | Path | None = None,
    **rest: Unpack[Rest],
) -> dict[str, Any]:
    """What arrives."""
    return {"names": names, "count": count, "mode": mode, "place": place, **rest}


class Scalar:
    """As numpy's are."""

    def item(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("said", "arrives"),
    [
        ({"count": "3"}, {"count": 3}),
        ({"count": 3.0}, {"count": 3}),
        ({"count": Scalar()}, {"count": 7}),
        ({"names": ("a", Path("b"))}, {"names": ["a", "b"]}),
        ({"names": (each for each in "ab")}, {"names": ["a", "b"]}),
        ({"mode": "two"}, {"mode": "two"}),
        ({"place": Path("x")}, {"place": Path("x")}),
        ({"size": "5"}, {"size": 5}),
        ({"size": None}, {"size": None}),
        ({"other": "5"}, {"other": "5"}),
    ],
)
def test_what_can_be_taken_is(said: dict[str, Any], arrives: dict[str, Any]) -> None:
    found = given(**({"names": "n"} | said))
    assert found == {"names": "n", "count": 1, "mode": None, "place": None} | arrives


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"count": "three"}, "count is 'three'"),
        ({"count": 2.5}, "count is 2.5"),
        ({"count": True}, "count is True"),
        ({"count": None}, "count is None"),
        ({"names": [1]}, "names is"),
        ({"names": {"a": 1}}, "names is"),
        ({"mode": "too"}, "unknown mode 'too'"),
        ({"mode": ["one"]}, "unknown mode"),
        ({"place": 5}, "place is 5"),
        ({"size": "x"}, "size is 'x'"),
    ],
)
def test_what_cannot_is_refused_by_name(said: dict[str, Any], message: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        given(**({"names": "n"} | said))
    assert message in str(caught.value)


def test_help_shows_the_function_itself() -> None:
    assert (given.__name__, given.__doc__) == ("given", "What arrives.")
