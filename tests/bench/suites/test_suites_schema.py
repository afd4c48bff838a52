"""The schema of a suite says what the reader accepts."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipebench.bench.suites import suite_names, suite_schema
from pipebench.bench.suites.table import AXES
from pipebench.cli.main import run

SHIPPED = Path(__file__).resolve().parents[3] / "pipebench" / "bench" / "suites"
TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "array": list, "null": type(None)}


def fits(value: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """The part of JSON Schema that ours uses."""
    if "$ref" in schema:
        return fits(value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return any(fits(value, each, definitions) for each in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if schema["type"] == "object":
        one = schema.get("oneOf", [{"required": []}])
        return (
            isinstance(value, dict)
            and set(value) <= set(schema["properties"])
            and set(schema["required"]) <= set(value)
            and sum(set(each["required"]) <= set(value) for each in one) == 1
            and not ("not" in schema and set(schema["not"]["required"]) <= set(value))
            and all(fits(each, schema["properties"][key], definitions) for key, each in value.items())
        )
    if not isinstance(value, TYPES[schema["type"]]) or isinstance(value, bool):
        return False
    if schema["type"] == "array":
        return len(value) >= schema.get("minItems", 0) and all(
            fits(each, schema["items"], definitions) for each in value
        )
    return not isinstance(value, int | float) or (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and value > schema.get("exclusiveMinimum", value - 1)
        and value < schema.get("exclusiveMaximum", value + 1)
    )


@pytest.mark.parametrize("name", suite_names())
def test_shipped_suites_fit(name: str) -> None:
    schema = suite_schema()
    content = tomllib.loads((SHIPPED / f"{name}.toml").read_text())
    assert fits(content, schema, schema["$defs"])


@pytest.mark.parametrize(
    "change",
    [
        {"devices": 0},
        {"devices": []},
        {"devices": "8"},
        {"devices": None},
        {"model": "mmt"},
        {"profile": None},
        {"mini_batch": 8, "mini_batch_per_device": 1},
        {"memory": 12},
        {"reserve": 1},
        {"optimizer": "adamw"},
        {"device": 8},
    ],
)
def test_what_the_reader_refuses_does_not_fit(change: dict[str, Any]) -> None:
    schema = suite_schema()
    workload: dict[str, Any] = {"profile": "mmt", "devices": [4, 8]}
    suite = {"name": "a", "summary": "b", "workloads": [workload]}
    assert fits(suite, schema, schema["$defs"])
    workload |= change
    suite["workloads"] = [{key: value for key, value in workload.items() if value is not None}]
    assert not fits(suite, schema, schema["$defs"])


def test_the_axes_may_be_lists() -> None:
    properties = suite_schema()["$defs"]["SuiteWorkload"]["properties"]
    lists = {
        key
        for key, each in properties.items()
        if any(kind.get("type") == "array" for kind in each.get("anyOf", []))
    }
    assert lists == set(AXES)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "suite"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(suite_schema()))
    assert run(["schema", "suit"]) == 2
    assert "did you mean 'suite'" in capsys.readouterr().err
