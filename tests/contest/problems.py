"""The problems of the contest, by a fixed seed."""

import random
from dataclasses import dataclass

from pipebench.bench.suites.files import load_suite
from pipebench.bench.suites.grid import GridPoint, grid_points
from pipebench.domain.problem import RegimeMode
from pipebench.domain.workload import WorkloadSpec

LANGUAGE_MODELS = {
    "1.3B": "llm[ffn=5461,heads=16,hidden=2048,layers=24,sequence=2048]",
    "2.7B": "llm[ffn=6826,heads=32,hidden=2560,layers=32,sequence=2048]",
    "6.7B": "llm[ffn=11008,heads=32,hidden=4096,layers=32,sequence=2048]",
    "13B": "llm[ffn=13824,heads=40,hidden=5120,layers=40,sequence=2048]",
    "33B": "llm[ffn=17920,heads=52,hidden=6656,layers=60,sequence=2048]",
    "65B": "llm[ffn=22016,heads=64,hidden=8192,layers=80,sequence=2048]",
}
DEVICES = {"1.3B": (8, 16), "2.7B": (8, 16), "6.7B": (8, 16, 32), "13B": (16, 32), "33B": (32, 64), "65B": (64,)}
MODES: tuple[RegimeMode, ...] = ("sync", "async")


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem. name: of its workload, with the values of its grid. group: where it comes from."""

    group: str
    name: str
    spec: WorkloadSpec
    mode: RegimeMode

    @property
    def label(self) -> str:
        """For tables and files."""
        return f"{self.group}: {self.name}, {self.mode}"


def named(point: GridPoint) -> str:
    """The name of a workload, with its devices."""
    return point.name if "devices=" in point.name else f"{point.name} devices={point.spec.devices}"


def entries() -> dict[str, list[Entry]]:
    """All that may be drawn, by group."""
    found: dict[str, list[Entry]] = {}
    regimes: dict[str, tuple[RegimeMode, ...]] = {"quick": MODES, "chains": MODES, "branches": ("sync",)}
    for suite, modes in regimes.items():
        points = list(grid_points(load_suite(suite), {}))
        found[suite] = [Entry(suite, named(point), point.spec, mode) for point in points for mode in modes]
    found["language models"] = [
        Entry("language models", f"{size} devices={devices}", spec, "sync")
        for size, model in LANGUAGE_MODELS.items()
        for devices in DEVICES[size]
        for spec in [
            WorkloadSpec(
                model=model,
                cluster="dgx-h100",
                devices=devices,
                mini_batch=8 * devices,
                precision="fp16",
                gradient_precision="fp32",
                optimizer="adam",
            )
        ]
    ]
    return found


def drawn(problems: int, seed: int) -> list[Entry]:
    """So many, from all groups in turn, each in a random order; a group that is at its end is passed over."""
    draw = random.Random(seed)
    groups = entries()
    for each in groups.values():
        draw.shuffle(each)
    chosen: list[Entry] = []
    while len(chosen) < problems and any(groups.values()):
        for each in groups.values():
            if each and len(chosen) < problems:
                chosen.append(each.pop())
    return chosen
