"""What the paper runs: four models on 4 to 64 devices, by several planners; and how to find a row again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pipebench.artefacts.findings import claim_only
from pipebench.artefacts.result_grid import Contender, ResultGrid, result_grid
from pipebench.domain.artefact import Cell, Claim, Finding, Result
from pipebench.domain.row import Status

MODELS = {"alexnet": 128, "inception_v3": 128, "rnnlm": 64, "transformer": 64}
"""Model to its mini-batch; 64 for the last two is inferred, the number is not in the paper's text."""
DEVICES = (4, 8, 16, 32, 64)
FEW = (4, 8)
CLUSTER = "rannc"
"""V100 nodes of 8 behind one 100 Gb/s port: the paper's nodes hold 8 GTX 1080 Ti or RTX 2080 Ti."""
ENOUGH = "1000GB"
"""The paper's search ignores memory: so do the cells."""
DATA_PARALLEL = "expert[strategy=data-parallel]"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A model on a number of devices."""

    model: str
    devices: int

    def __str__(self) -> str:
        return f"{self.model} on {self.devices}"


Grid = ResultGrid[Place]


def cells(
    contenders: Sequence[Contender],
    devices: Sequence[int],
    models: Sequence[str] = tuple(MODELS),
    repeat: int = 0,
    failures: Mapping[tuple[str, str], tuple[Status, ...]] = MappingProxyType({}),
) -> Iterator[Cell]:
    """Every model on every number of devices by every planner. failures: those expected, by model and key."""
    for model in models:
        for count in devices:
            for who in contenders:
                yield Cell(
                    at={"model": model, "devices": float(count), "series": who.key},
                    planner=who.planner,
                    model=f"pase-{model}",
                    cluster=CLUSTER,
                    devices=count,
                    memory=ENOUGH,
                    mini_batch=MODELS[model],
                    repeat=repeat,
                    timeout_s=600.0,
                    expected_failures=failures.get((model, who.key), ()),
                    expected_s=_seconds(model, who),
                )


def _seconds(model: str, who: Contender) -> float:
    """Of one trial: the random walk takes a second, everything else less."""
    return (1.2 if who.planner.startswith("mcmc") else 0.4) * (1.5 if model == "transformer" else 1.0)


def read_grid(results: Sequence[Result]) -> Grid:
    """All results, keyed by model, devices and contender."""
    return result_grid(results, Place)


def lost_lines(results: Sequence[Result], expected: Sequence[Contender] = ()) -> tuple[str, ...]:
    """A line for each row without a plan, but those of contenders that are expected to have none."""
    keys = {who.key for who in expected}
    return tuple(
        f"{at['model']} on {at['devices']:g}, {at['series']}: {each.row.status}: {each.row.reason}"
        for each in results
        if each.row.status != "ok" and (at := each.cell.at)["series"] not in keys
    )


def no_cells(claim: Claim) -> Finding:
    """The finding of a claim without cells to judge."""
    return claim_only(claim, "no cells with what is compared")
