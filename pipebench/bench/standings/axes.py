"""The axes on which problems differ: model, devices, their memory, and the other keys of a suite's grid."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pipebench.bench.suites.table import AXES, QUANTITIES
from pipebench.documents.units import readable_bytes
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.domain.workload import workload_fields

_FIELD = re.compile(rf" (?=(?:{'|'.join(AXES)})=)")
"""Between two fields of the name that a grid gives a workload; a value may hold spaces itself."""
_IN_A_ROW = ("devices", "memory", "mini_batch", "mini_batch_per_device")
"""Keys of a grid whose value every row has as a figure, also outside of grids."""


@dataclass(frozen=True, slots=True)
class ProblemAxis:
    """One axis of a set of problems.

    values: in words, in the order of their figures, words without a figure as they first occur; at least 2.
    of_problem: by workload_id the place of the problem's value in values.
    """

    name: str
    values: tuple[str, ...]
    of_problem: Mapping[str, int]


def problem_axes(rows: Iterable[Row]) -> tuple[ProblemAxis, ...]:
    """The axes on which the problems of these rows differ, whatever their regimes.

    An axis that tells problems apart just as an earlier one does is left out: one choice would be asked twice.
    """
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.workload_id, row)
    places = {problem: dict(_places(row)) for problem, row in first.items()}
    found: list[ProblemAxis] = []
    for name in dict.fromkeys(name for place in places.values() for name in place):
        axis = _axis(name, {problem: place.get(name, ("-", None)) for problem, place in places.items()})
        if len(axis.values) > 1 and not any(_same_parts(axis, earlier) for earlier in found):
            found.append(axis)
    return tuple(found)


def crossed_pairs(axes: Sequence[ProblemAxis]) -> tuple[tuple[ProblemAxis, ProblemAxis], ...]:
    """Pairs of axes that span a grid, the one with most cells first; each pair with its longer axis first.

    Where each value of one axis occurs with one value of the other only there is no grid, but a list.
    """
    found = []
    for first, second in combinations(axes, 2):
        cells = {(place, second.of_problem[problem]) for problem, place in first.of_problem.items()}
        if len(cells) > max(len(first.values), len(second.values)):
            longer, shorter = sorted((first, second), key=lambda axis: -len(axis.values))
            found.append((len(cells), longer, shorter))
    found.sort(key=lambda each: -each[0])
    return tuple((longer, shorter) for _, longer, shorter in found)


def _places(row: Row) -> Iterator[tuple[str, tuple[str, float | None]]]:
    """Where a problem lies: by axis its value in words and, where it has one, the figure to sort by."""
    stem, *fields = _FIELD.split(row.workload)
    said = dict(field.split("=", 1) for field in fields)
    model = row.model if row.model.startswith(row.profile) else row.profile
    yield "model", (stem if said and stem else model, None)
    yield "cluster", (row.cluster, None)
    yield "devices", (str(row.devices), row.devices)
    if row.device_memory_bytes is not None:
        yield "device memory", (readable_bytes(row.device_memory_bytes), row.device_memory_bytes)
    for name, value in said.items():
        if name not in _IN_A_ROW:
            yield name.replace("_", "-"), (value, _figure(name, value))
    yield "mini-batch", (str(row.mini_batch), row.mini_batch)


def _figure(name: str, words: str) -> float | None:
    """The figure of a key's value; None where it has none."""
    unit = workload_fields()[name].unit
    try:
        return float(QUANTITIES[unit](words)) if unit else float(words)
    except (PipebenchError, ValueError):
        return None


def _axis(name: str, values: Mapping[str, tuple[str, float | None]]) -> ProblemAxis:
    distinct = dict(values.values())
    words = list(distinct)
    if all(figure is not None for figure in distinct.values()):
        words.sort(key=lambda word: distinct[word] or 0.0)
    number = {word: place for place, word in enumerate(words)}
    return ProblemAxis(name, tuple(words), {problem: number[word] for problem, (word, _) in values.items()})


def _same_parts(axis: ProblemAxis, other: ProblemAxis) -> bool:
    """Whether the two put the same problems together."""
    pairs = {(place, other.of_problem[problem]) for problem, place in axis.of_problem.items()}
    return len(pairs) == len(axis.values) == len(other.values)
