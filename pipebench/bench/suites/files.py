"""Suite files: by name or by path, decoded, and their JSON Schema."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from pipebench.bench.suites.table import Suite, SuiteWorkload
from pipebench.domain.errors import PipebenchError, unknown
from pipebench.domain.workload import workload_fields
from pipebench.formats.files import read_file
from pipebench.formats.typed_text import parse_toml


@dataclass(frozen=True, slots=True)
class ChosenSuite:
    """A suite, where it was read (for messages) and the folder that its files are relative to.

    ships: whether it is part of pipebench; one that is not may name installed components only, unless trusted.
    """

    suite: Suite
    source: str
    folder: Path = Path()
    ships: bool = False


def suite_names() -> list[str]:
    """The suites that ship."""
    return sorted(
        item.name.removesuffix(".toml") for item in _shipped_suites().iterdir() if item.name.endswith(".toml")
    )


def load_suite(name: str) -> ChosenSuite:
    """A shipped suite by name, or a TOML file by path.

    Raises PipebenchError: an unknown name or key (with the nearest one), a file that cannot be read, a key that is
    missing or has a wrong type or value (with its place in the file).
    """
    if name in suite_names():
        source = f"{name}.toml"
        shipped = parse_toml(_shipped_suites().joinpath(source).read_bytes(), Suite, source)
        return ChosenSuite(shipped, source, ships=True)
    if name.endswith(".toml") or "/" in name or os.path.exists(name):
        return ChosenSuite(parse_toml(read_file(name), Suite, name), name, Path(name).parent)
    raise unknown("suite", name, suite_names())


def load_suites(names: Iterable[str]) -> list[ChosenSuite]:
    """Several suites, in order. Raises PipebenchError as `load_suite`, and where two have the same name."""
    chosen = [load_suite(name) for name in names]
    first: dict[str, str] = {}
    for each in chosen:
        if each.suite.name in first:
            raise PipebenchError(
                f"two suites are named {each.suite.name!r}: {first[each.suite.name]} and {each.source}",
                "give each suite once, under a name of its own",
            )
        first[each.suite.name] = each.source
    return chosen


def _shipped_suites() -> Traversable:
    return files("pipebench.bench.suites")


def suite_schema() -> dict[str, Any]:
    """The schema, with the text of each key and what types cannot say: a model or a profile, one mini-batch."""
    (reference,), definitions = msgspec.json.schema_components([Suite], ref_template="#/$defs/{name}")
    workload = definitions[SuiteWorkload.__name__]
    for name, field in workload_fields().items():
        workload["properties"][name]["description"] = f"{field.text}."
    workload["oneOf"] = [{"required": ["model"]}, {"required": ["profile"]}]
    workload["not"] = {"required": ["mini_batch", "mini_batch_per_device"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pipebench suite",
        **reference,
        "$defs": definitions,
    }
