"""Figure 6: speedups over data parallelism."""

from collections.abc import Callable, Mapping, Sequence

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Judgement, Panel, Result
from pipebench.domain.row import Row
from pipebench_pase.figures.cells import DATA_PARALLEL, DEVICES, FEW, MODELS, Place, Series, cells, lost, rows_of
from pipebench_pase.figures.table1 import nothing

BASE = Series("data-parallel", "data parallelism", DATA_PARALLEL, 0)
EXPERT = Series("expert", "expert", "expert", 1)
WALK = Series("mcmc", "FlexFlow-like walk", "mcmc", 2)
OURS = Series("pase", "PaSE", "pase", 3)
SERIES = (BASE, EXPERT, WALK, OURS)
OVER_DATA_PARALLEL = Claim(
    name="never below data parallelism",
    statement="PaSE's strategy is at least as fast as data parallelism for every model and number of devices",
    quote=(
        "the strategies found using our approach outperform the baseline data parallelism strategy in all the "
        "cases"
    ),
    where="abstract; figure 6",
)
OVER_OTHERS = Claim(
    name="better than experts and FlexFlow",
    statement="PaSE's strategy is at least as fast as the expert's and as the random walk's",
    quote=(
        "our strategies consistently perform better than expert-designed strategies, and the strategies proposed "
        "by FlexFlow"
    ),
    where="section IV-B; figure 6a",
)
Value = Callable[[Row], float | None]


class Fig6:
    """hooks.reproduction.Reproduction."""

    claims = (OVER_DATA_PARALLEL, OVER_OTHERS)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """4 and 8 devices; in full up to 64. The user's profiles have no place in the figure."""
        del profiles
        return tuple(cells(SERIES, DEVICES if full else FEW))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Both claims: in the suite's simulation, which decides, and in PaSE's own cost beside it."""
        rows = rows_of(results)
        return [_judged(OVER_DATA_PARALLEL, rows, (BASE,)), _judged(OVER_OTHERS, rows, (EXPERT, WALK))]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each model: simulated speedup over data parallelism by devices; PaSE's own view dashed."""
        rows = rows_of(results)
        panels = tuple(
            Panel(
                title=model,
                x_label="devices",
                y_label="speedup over data parallelism",
                curves=tuple(curve for each in SERIES[1:] for curve in _curves(rows, model, each)),
            )
            for model in MODELS
        )
        return Figure(title="PaSE, figure 6: speedups over data parallelism", panels=panels, notes=lost(rows))


def _simulated(row: Row) -> float | None:
    return row.simulated_s


def _claimed(row: Row) -> float | None:
    return row.claimed_s


def _speedup(rows: Mapping[Place, Row], place: Place, over: Series, value: Value) -> float | None:
    """How many times faster the row at `place` is than that of the other series."""
    own, other = rows.get(place), rows.get(place._replace(series=over.key))
    mine, theirs = (value(row) if row is not None and row.status == "ok" else None for row in (own, other))
    return theirs / mine if mine and theirs else None


def _curves(rows: Mapping[Place, Row], model: str, series: Series) -> list[Curve]:
    found = []
    for kind, value in (("schedule", _simulated), ("estimate", _claimed)):
        points = []
        for place in sorted(rows):
            if (place.model, place.series) == (model, series.key):
                speedup = _speedup(rows, place, BASE, value)
                if speedup is not None:
                    points.append((float(place.devices), speedup))
        if points:
            label = series.label if kind == "schedule" else f"{series.label}, its own cost"
            found.append(
                Curve(
                    label=label,
                    kind="schedule" if kind == "schedule" else "estimate",
                    colour=series.colour,
                    points=tuple(points),
                )
            )
    return found


def _judged(claim: Claim, rows: Mapping[Place, Row], others: Sequence[Series]) -> Finding:
    lines, found, in_its_terms = [], [], []
    for place in rows:
        for other in others if place.series == OURS.key else ():
            simulated = _speedup(rows, place, other, _simulated)
            claimed = _speedup(rows, place, other, _claimed)
            if simulated is None or claimed is None:
                continue
            found.append(simulated)
            in_its_terms.append(claimed)
            where = f"{place.model} on {place.devices}"
            lines.append(f"{where}: {simulated:.2f} times {other.label}, {claimed:.2f} in its own cost")
    if not found:
        return nothing(claim)
    faster = [value >= 1 - 1e-9 for value in found]
    judgement: Judgement = "holds" if all(faster) else "depends" if any(faster) else "does not hold"
    reason = f"simulated, {sum(faster)} of {len(faster)} at least as fast"
    if not all(faster):
        least = min(in_its_terms)
        reason += (
            f"; in its own cost the least is {least:.2f}, so the rest is what that cost leaves out or counts "
            "otherwise: latency, links shared inside a node, arithmetic below the peak"
        )
    return Finding(claim=claim, measured=tuple(lines), value=min(found), judgement=judgement, reason=reason)
