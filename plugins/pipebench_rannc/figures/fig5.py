"""Figure 5: throughput of enlarged ResNet models on 32 and on 8 devices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.artefacts.curves import with_marks
from pipebench.artefacts.findings import Case, judge_cases
from pipebench.artefacts.result_grid import Contender, ResultGrid, result_grid
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Panel, Result
from pipebench_rannc.figures.contenders import BEST, DATA_PARALLEL, MODEL, RANNCS, rate_curve, rate_text

SECTION = "section IV-B, on figure 5"
NETWORKS = (50, 101, 152)
WIDTH = 8
SAMPLES = {32: 512, 8: 128}
GPIPE_STAGES = 8
GPIPE_MICRO_BATCHES = 64
CONTENDERS = (DATA_PARALLEL, MODEL, *RANNCS)

ALL = Claim(
    name="all models",
    statement="RaNNC and GPipe-Model have a plan for every model, data parallelism only for the smallest",
    quote=(
        "RaNNC and GPipe-Model successfully trained all of the models, while data parallelism could train only "
        "the smallest model in our settings"
    ),
    where=SECTION,
)
MARGIN = Claim(
    name="faster than GPipe-Model",
    statement="On 8 devices RaNNC's throughput is above GPipe-Model's for every model, by at least 20 %",
    quote="RaNNC outperformed GPipe-Model by a large margin in all of the settings",
    where=SECTION,
)
LARGE = 1.2


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One model on a number of devices."""

    devices: int
    layers: int


Grid = ResultGrid[Place]


class ResNetThroughput:
    """hooks.reproduction.Reproduction."""

    claims = (ALL, MARGIN)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """ResNet-50, -101 and -152 of eight times the width; all of it takes a few minutes."""
        del full, profiles
        return tuple(
            cell(layers, devices, who)
            for devices in SAMPLES
            for layers in NETWORKS
            for who in CONTENDERS
            if who is not MODEL or devices == GPIPE_STAGES
        )

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        grid = result_grid(results, Place)
        return [
            judge_cases(ALL, _all(grid), "as claimed for each of them, on 32 and on 8 devices"),
            judge_cases(
                MARGIN,
                _margin(grid),
                f"RaNNC's throughput / GPipe-Model's is at least {LARGE:g}; beside them the balance",
                "GPipe-Model's stages are cut here by an exact search for the busiest stage, not by hand",
            ),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each number of devices: throughput by layers."""
        grid = result_grid(results, Place)
        panels = []
        for devices in grid.values("devices"):
            line = sorted(grid.places(devices=devices))
            curves = with_marks(rate_curve(grid, line, who, lambda place: place.layers) for who in CONTENDERS)
            title = f"ResNet x{WIDTH}, {devices} devices"
            panels.append(Panel(title=title, x_label="layers", y_label="samples/s", curves=curves))
        title = "RaNNC, figure 5: throughput of enlarged ResNet models, fp32"
        return Figure(title=title, panels=tuple(panels), notes=grid.lost)


def cell(layers: int, devices: int, who: Contender) -> Cell:
    """One model; GPipe-Model has eight stages and 64 micro-batches, as in the paper."""
    model = who is MODEL
    return Cell(
        at={"devices": float(devices), "layers": float(layers), "series": who.key},
        planner=who.planner,
        model=f"resnet{layers}[width={WIDTH}]",
        cluster="rannc",
        devices=devices,
        mini_batch=SAMPLES[devices],
        micro_batch=SAMPLES[devices] // GPIPE_MICRO_BATCHES if model else None,
        dp=1 if model else None,
        pp=GPIPE_STAGES if model else None,
        optimizer="adam",
        expected_s=3.5 if who is BEST else 0.5,
    )


def _all(grid: Grid) -> Iterator[Case]:
    for devices in grid.values("devices"):
        for who in CONTENDERS:
            tried = sorted(place for place, _ in grid.rows(who) if place.devices == devices)
            have = [place for place in tried if grid.rate(place, who) is not None]
            if not tried:
                continue
            expected = tried[:1] if who is DATA_PARALLEL else tried
            listed, of = (", ".join(str(place.layers) for place in each) or "none" for each in (have, tried))
            text = f"{devices} devices, {who.label}: {listed} of {of} layers"
            yield Case(text, len(have) / len(tried), have == expected)


def _margin(grid: Grid) -> Iterator[Case]:
    for place in grid.places():
        for who in RANNCS:
            ratio = grid.ratio(place, who, MODEL)
            if ratio is not None:
                rates = f"{rate_text(grid, place, who)} / {rate_text(grid, place, MODEL)}"
                text = f"ResNet{place.layers}x{WIDTH}: {rates} = {ratio:.2f}"
                yield Case(text, ratio, ratio >= LARGE)
