"""Figure 5: throughput of enlarged ResNet models on 32 and on 8 devices."""

from collections.abc import Sequence

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_rannc.figures.contenders import BEST, DATA_PARALLEL, MODEL, PAPER, RANNCS, RELEASED, Contender
from pipebench_rannc.figures.measured import Case, Measured, judged, measured

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


class Fig5:
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
        found = measured(results, "devices", "layers")
        return [
            judged(ALL, _all(found), "as claimed for each of them, on 32 and on 8 devices"),
            judged(
                MARGIN,
                _margin(found),
                f"RaNNC's throughput / GPipe-Model's is at least {LARGE:g}; beside them the balance",
                "GPipe-Model's stages are cut here by an exact search for the busiest stage, not by hand",
            ),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each number of devices: throughput by layers."""
        found = measured(results, "devices", "layers")
        panels = []
        for devices in dict.fromkeys(place[0] for place in found.rows):
            along = sorted(place for place in found.rows if place[0] == devices)
            curves: list[Curve] = []
            for who in CONTENDERS:
                curve = found.curve(along, 1, who)
                curves += [curve] if curve.points or curve.infeasible else []
            panels.append(
                Panel(
                    title=f"ResNet x{WIDTH}, {devices:g} devices",
                    x_label="layers",
                    y_label="samples/s",
                    curves=tuple(curves),
                )
            )
        title = "RaNNC, figure 5: throughput of enlarged ResNet models, fp32"
        return Figure(title=title, panels=tuple(panels), notes=found.lost)


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
        expected_s=5 if who is BEST else 2,
    )


def _all(found: Measured) -> list[Case]:
    cases = []
    for devices in dict.fromkeys(place[0] for place in found.rows):
        along = sorted(place for place in found.rows if place[0] == devices)
        for who in CONTENDERS:
            ran = [place for place in along if who.key in found.rows[place]]
            have = [place for place in ran if found.throughput(place, who) is not None]
            if not ran:
                continue
            wanted = ran[:1] if who is DATA_PARALLEL else ran
            listed = ", ".join(f"{place[1]:g}" for place in have) or "none"
            text = f"{devices:g} devices, {who.label}: {listed} of {', '.join(f'{p[1]:g}' for p in ran)} layers"
            cases.append(Case(text, len(have) / len(ran), have == wanted))
    return cases


def _margin(found: Measured) -> list[Case]:
    cases = []
    for place in found.rows:
        slow = found.throughput(place, MODEL)
        for who in (PAPER, RELEASED, BEST):
            fast = found.throughput(place, who)
            if slow and fast:
                told = f"{found.told(place, who)} / {found.told(place, MODEL)} = {fast / slow:.2f}"
                cases.append(Case(f"ResNet{place[1]:g}x{WIDTH}: {told}", fast / slow, fast / slow >= LARGE))
    return cases
