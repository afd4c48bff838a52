"""From the workloads of a suite to single ones: the cross product of the keys that hold lists."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pipebench.bench.suites.files import ChosenSuite
from pipebench.bench.suites.table import AXES, SuiteWorkload, values
from pipebench.domain.errors import PipebenchError
from pipebench.domain.workload import WorkloadSpec
from pipebench.formats.profiles.shipped import profile_names
from pipebench.hooks.syntax import Reference, parse_reference

MOST_WORKLOADS = 100_000


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One workload of a suite, its name with the values of its lists, and its place in the file."""

    spec: WorkloadSpec
    name: str
    place: str


def grid_points(chosen: ChosenSuite, overrides: Mapping[str, Any]) -> Iterator[GridPoint]:
    """The workloads in the order of the file, of a grid the last list fastest.

    overrides: keys of a workload whose value replaces the suite's in all of them; a list becomes one value.
    Raises PipebenchError where there are over MOST_WORKLOADS, before the first.
    """
    entries = [_with_overrides(_with_paths(entry, chosen.folder), overrides) for entry in chosen.suite.workloads]
    sizes = [prod(max(1, len(values(getattr(entry, axis)))) for axis in AXES) for entry in entries]
    if sum(sizes) > MOST_WORKLOADS:
        largest = max(sizes)
        raise PipebenchError(
            f"{chosen.source}: {sum(sizes):,} workloads, a suite may have at most {MOST_WORKLOADS:,}",
            f"workloads[{sizes.index(largest)}] makes {largest:,} of them: shorten its lists",
        )
    for position, (written, entry) in enumerate(zip(chosen.suite.workloads, entries, strict=True)):
        for name, spec in _grid(entry, written.name or written.model or written.profile or ""):
            yield GridPoint(spec, name, f"workloads[{position}] ({name})")


def _with_paths(entry: SuiteWorkload, folder: Path) -> SuiteWorkload:
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


def _with_overrides(entry: SuiteWorkload, overrides: Mapping[str, Any]) -> SuiteWorkload:
    """What is said replaces the suite's word; a mini-batch also the one that is written the other way."""
    if overrides.keys() & {"mini_batch", "mini_batch_per_device"}:
        overrides = {"mini_batch": None, "mini_batch_per_device": None, **overrides}
    return replace(entry, **overrides)


def _grid(entry: SuiteWorkload, name: str) -> Iterator[tuple[str, WorkloadSpec]]:
    lists = {axis: each for axis in AXES if isinstance(each := getattr(entry, axis), tuple)}
    for point in product(*lists.values()):
        at = dict(zip(lists, point, strict=True))
        yield " ".join([name, *(f"{axis}={value}" for axis, value in at.items())]), entry.plain(**at)
