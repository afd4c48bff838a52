"""From the workloads of a suite to single ones: the cross product of the keys that hold lists."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pipebench.bench.problems.wanted import Wanted
from pipebench.bench.suites.files import ChosenSuite
from pipebench.bench.suites.table import AXES, SuiteWorkload, values
from pipebench.domain.errors import PipebenchError
from pipebench.formats.profiles import profile_names
from pipebench.hooks.syntax import Reference, parse_reference

MOST_WORKLOADS = 100_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One workload of a suite, and its place in the file."""

    wanted: Wanted
    place: str


def cells(chosen: ChosenSuite, said: Mapping[str, Any]) -> Iterator[Cell]:
    """The workloads in the order of the file, of a grid the last list fastest.

    said: keys of a workload whose value replaces the suite's in all of them; a list becomes one value.
    Raises PipebenchError where there are over MOST_WORKLOADS, before the first.
    """
    entries = [_replaced(_located(entry, chosen.folder), said) for entry in chosen.suite.workloads]
    sizes = [prod(max(1, len(values(getattr(entry, axis)))) for axis in AXES) for entry in entries]
    if sum(sizes) > MOST_WORKLOADS:
        largest = max(sizes)
        raise PipebenchError(
            f"{chosen.source}: {sum(sizes):,} workloads, a suite may have at most {MOST_WORKLOADS:,}",
            f"workloads[{sizes.index(largest)}] makes {largest:,} of them: shorten its lists",
        )
    for position, (written, entry) in enumerate(zip(chosen.suite.workloads, entries, strict=True)):
        for wanted in _grid(entry, written.name or written.model or written.profile or ""):
            yield Cell(wanted, f"workloads[{position}] ({wanted.name})")


def _located(entry: SuiteWorkload, folder: Path) -> SuiteWorkload:
    """Its files relative to the suite's folder."""
    if entry.cluster.endswith((".toml", ".json")) or "/" in entry.cluster:
        entry = replace(entry, cluster=str(folder / entry.cluster))
    if entry.profile is not None:
        reference = parse_reference(entry.profile)
        path = folder / reference.name
        if (
            "/" in reference.name
            or path.suffix
            or (reference.name not in profile_names() and os.path.exists(path))
        ):
            entry = replace(entry, profile=str(Reference(str(path), reference.options)))
    return entry


def _replaced(entry: SuiteWorkload, said: Mapping[str, Any]) -> SuiteWorkload:
    if "mini_batch" in said:
        entry = replace(entry, mini_batch_per_device=None)
    return replace(entry, **said)


def _grid(entry: SuiteWorkload, name: str) -> Iterator[Wanted]:
    lists = {axis: each for axis in AXES if isinstance(each := getattr(entry, axis), tuple)}
    references = {"model": entry.model, "profile": entry.profile}
    whole = {
        key: getattr(entry, key) for key in entry.__struct_fields__ if key not in (*lists, *references, "name")
    }
    whole |= {key: parse_reference(text) for key, text in references.items() if text is not None}
    for point in product(*lists.values()):
        at = dict(zip(lists, point, strict=True))
        yield Wanted(**whole, **at, name=" ".join([name, *(f"{axis}={value}" for axis, value in at.items())]))
