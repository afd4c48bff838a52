"""The text of each field, from docstrings."""

from typing import Any

import msgspec

from pipebench.documents.fields import described, field_texts, value_types
from pipebench.domain.value import Value


class Inner(Value, frozen=True, kw_only=True):
    """What is inside.

    depth: in metres.
    """

    depth: int = 0


class Outer(Value, frozen=True, kw_only=True):
    """A summary: it names no field.

    first, second: two of a kind,
    told in two lines.
    third: its units: seconds.

    Nothing of this is about the third.
    other: no such field.
    """

    first: int
    second: Inner | None = None
    third: tuple[Inner, ...] = ()
    silent: dict[str, "Inner"] = {}


class Wider(Outer, frozen=True, kw_only=True):
    """More.

    third: said again.
    """


def test_the_lines_of_a_docstring_are_about_fields() -> None:
    assert field_texts(Outer) == {
        "first": "two of a kind, told in two lines.",
        "second": "two of a kind, told in two lines.",
        "third": "its units: seconds.",
    }
    assert field_texts(Wider) == {**field_texts(Outer), "third": "said again."}


def test_classes_inside_a_type_are_found_once() -> None:
    assert value_types(Outer) == [Outer, Inner]
    assert value_types(dict[str, tuple[Wider, ...]] | None) == [Wider, Inner]
    assert value_types(int) == []


def test_a_schema_has_the_text_of_each_field() -> None:
    schema: dict[str, Any] = described(msgspec.json.schema(Outer), Outer)
    properties = schema["$defs"]["Outer"]["properties"]
    assert properties["third"]["description"] == "its units: seconds."
    assert "description" not in properties["silent"]
    assert schema["$defs"]["Inner"]["properties"]["depth"]["description"] == "in metres."
