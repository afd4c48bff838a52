"""What the paper runs: four models on 4 to 64 devices, by several planners; and how to find a row again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipebench.domain.artefact import Cell, Result
from pipebench.domain.row import Row

MODELS = {"alexnet": 128, "inception_v3": 128, "rnnlm": 64, "transformer": 64}
"""Model to its mini-batch; 64 for the last two is inferred, the number is not in the paper's text."""
DEVICES = (4, 8, 16, 32, 64)
FEW = (4, 8)
CLUSTER = "rannc"
"""V100 nodes of 8 behind one 100 Gb/s port: the paper's nodes hold 8 GTX 1080 Ti or RTX 2080 Ti."""
ENOUGH = "1000GB"
"""The paper's search ignores memory: so do the cells."""
DATA_PARALLEL = "expert[strategy=data-parallel]"


class Place(NamedTuple):
    """A cell: which model, on how many devices, by whom."""

    model: str
    devices: int
    series: str


@dataclass(frozen=True, slots=True)
class Series:
    """One planner of a figure."""

    key: str
    label: str
    planner: str
    colour: int = 0


def cells(
    series: Sequence[Series], devices: Sequence[int], models: Sequence[str] = tuple(MODELS), repeat: int = 0
) -> Iterator[Cell]:
    """Every model on every number of devices by every planner."""
    for model in models:
        for count in devices:
            for each in series:
                yield Cell(
                    at={"model": model, "devices": float(count), "series": each.key},
                    planner=each.planner,
                    model=f"pase-{model}",
                    cluster=CLUSTER,
                    devices=count,
                    memory=ENOUGH,
                    mini_batch=MODELS[model],
                    repeat=repeat,
                    timeout_s=600.0,
                    expected_s=2.0 + (4.0 if model == "transformer" else 0.0),
                )


def rows_of(results: Sequence[Result]) -> Mapping[Place, Row]:
    """Rows by where they stand."""
    found = {}
    for result in results:
        at = result.cell.at
        found[Place(str(at["model"]), int(at["devices"]), str(at["series"]))] = result.row
    return found


def lost(rows: Mapping[Place, Row], expected: Sequence[str] = ()) -> tuple[str, ...]:
    """A line for each row without a plan, but those of the series that are expected to have none."""
    return tuple(
        f"{place.model} on {place.devices}, {place.series}: {row.status}: {row.reason}"
        for place, row in rows.items()
        if row.status != "ok" and place.series not in expected
    )
