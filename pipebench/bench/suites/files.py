"""Suites by name or by file, decoded."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pipebench.bench.suites.table import Suite
from pipebench.domain.errors import PipebenchError, unknown
from pipebench.formats.files import read_file
from pipebench.formats.strict import parse_toml


@dataclass(frozen=True, slots=True)
class ChosenSuite:
    """A suite, where it was read (for messages) and the folder that its files are relative to."""

    suite: Suite
    source: str
    folder: Path = Path()


def suite_names() -> list[str]:
    """The suites that ship."""
    return sorted(item.name.removesuffix(".toml") for item in _shipped().iterdir() if item.name.endswith(".toml"))


def load_suite(name: str) -> ChosenSuite:
    """A shipped suite by name, or a TOML file by path.

    Raises PipebenchError: an unknown name or key (with the nearest one), a file that cannot be read, a key that is
    missing or has a wrong type or value (with its place in the file).
    """
    if name in suite_names():
        source = f"{name}.toml"
        return ChosenSuite(parse_toml(_shipped().joinpath(source).read_bytes(), Suite, source), source)
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


def _shipped() -> Traversable:
    return files("pipebench.bench.suites")
