"""Throughputs by place: panels and tables of them, and cases that several figures share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from pipebench.artefacts import findings
from pipebench.artefacts.curves import curve, with_points
from pipebench.artefacts.findings import Case, claim_only, named_case
from pipebench.artefacts.result_grid import NO_PLAN, Contender, ResultGrid, result_grid
from pipebench.domain.artefact import Claim, Curve, Finding, Panel, Result, Table
from pipebench_graphpipe.artefacts.cells import GRAPHPIPES, PIPER, SEQUENTIAL, Place, piper_has_no_plan

Grid = ResultGrid[Place]

COLUMNS = (
    "Simulated samples/s (GP: GraphPipe best; paper: variant paper; PD: PipeDream k; PD+G: its partition with "
    "true dependencies; DP: data parallel)"
)
THOUSAND = 1000
Ratio = tuple[str, Contender, Contender]


def throughput_panel(
    grid: Grid, title: str, places: Sequence[Place], axis: str, contenders: Sequence[Contender]
) -> Panel:
    """Samples a second, or thousands of them, along an axis of the places."""
    rates = [grid.rate(place, contender) or 0.0 for place in places for contender in contenders]
    unit = THOUSAND if max(rates, default=0.0) >= 10 * THOUSAND else 1

    def line(who: Contender) -> Curve:
        return curve(
            who,
            places,
            lambda place: float(getattr(place, axis)),
            lambda place: None if (rate := grid.rate(place, who)) is None else rate / unit,
            lambda place: grid.has_no_plan(place, who),
        )

    label = "samples/s" if unit == 1 else "thousand samples/s"
    curves = with_points(line(who) for who in contenders)
    return Panel(title=title, x_label=axis.replace("_", "-"), y_label=label, curves=curves)


def throughput_table(
    grid: Grid, title: str, places: Sequence[Place], contenders: Sequence[Contender], ratios: Sequence[Ratio] = ()
) -> Table:
    """A row for each place: samples a second, then ratios of them."""
    rows = []
    axes = _axes(places)
    for place in places:
        rates = [_rate(grid, place, contender) for contender in contenders]
        over = [grid.ratio(place, high, low) for _, high, low in ratios]
        at = [of(place) for _, of in axes]
        rows.append((*at, *rates, *("-" if ratio is None else f"{ratio:.2f}" for ratio in over)))
    return Table(
        title=title,
        columns=(
            *(axis for axis, _ in axes),
            *(contender.short for contender in contenders),
            *(name for name, _, _ in ratios),
        ),
        rows=tuple(rows),
    )


def _axes(places: Sequence[Place]) -> list[tuple[str, Callable[[Place], str]]]:
    """The columns that tell places apart."""
    axes: list[tuple[str, Callable[[Place], str]]] = [
        ("model", lambda place: place.network),
        ("devices", lambda place: str(place.devices)),
    ]
    if len({(place.network, place.devices) for place in places}) < len({_problem(place) for place in places}):
        axes.append(("mini-batch", lambda place: str(place.mini_batch)))
    if any(place.micro_batch for place in places):
        axes.append(("b", lambda place: str(place.micro_batch or "free")))
    if any(place.memory_gb for place in places):
        axes.append(("GB", lambda place: f"{place.memory_gb:g}"))
    return axes


def _problem(place: Place) -> tuple[str, int, int]:
    return place.network, place.devices, place.mini_batch


def about(place: Place) -> str:
    """A place in words."""
    parts = [place.network, f"on {place.devices}"]
    parts += [f"b={place.micro_batch}"] if place.micro_batch else []
    parts += [f"{place.memory_gb:g} GB"] if place.memory_gb else []
    return " ".join(parts)


def _rate(grid: Grid, place: Place, contender: Contender) -> str:
    value = grid.rate(place, contender)
    if value is None:
        return "none" if grid.has_no_plan(place, contender) else "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def read_grid(results: Sequence[Result]) -> Grid:
    """All results by where they stand. A planner that does not take the model has no plan either."""
    return result_grid(results, Place, no_plan=(*NO_PLAN, "unsupported"))


def text_of(values: Sequence[float], form: Callable[[float], str] = "{:.2f}".format) -> str:
    """Figures in a line."""
    return " / ".join(map(form, values))


def judge_cases(claim: Claim, cases: Iterable[Case], rule: str, otherwise: str = "") -> Finding:
    """The kit's finding; a claim may depend on the planner, its form or the model."""
    none = "no cells with a plan of those compared"
    return findings.judge_cases(claim, cases, f"asked: {rule}", otherwise, no_cases=none)


def plotted_only(claim: Claim) -> Finding:
    """Values that the paper plots and does not print."""
    return claim_only(claim, "the paper plots the values and prints none; ours are below")


def pairs() -> list[tuple[str, Contender, Contender]]:
    """Both GraphPipes over both forms of the paper's baseline."""
    return [(f"{fast.label} / {slow.label}", fast, slow) for fast in GRAPHPIPES for slow in SEQUENTIAL]


def growth_cases(name: str, ratios: Sequence[float], noise: float = 0.0) -> Iterator[Case]:
    """Whether no step along the ratios falls, by more than the noise; no case where there is no step."""
    if len(ratios) > 1:
        least = min(after - before for before, after in pairwise(ratios))
        yield named_case(name, text_of(ratios), least, least >= -noise)


def depth_cases(
    grid: Grid, name: str, fast: Contender, slow: Contender, places: Sequence[Place]
) -> Iterator[Case]:
    """Whether the pipeline of `fast` is the shallower one at every place where both have a plan."""
    depths = [(one.depth or 0, other.depth or 0) for _, one, other in grid.both(fast, slow, places)]
    if depths:
        text = ", ".join(f"{depth} for {deep}" for depth, deep in depths)
        least = min(deep - depth for depth, deep in depths)
        yield named_case(name, text, least, least > 0)


def piper_cases(grid: Grid) -> Iterator[Case]:
    """Whether Piper has no plan for DLRM and CANDLE-Uno."""
    for network in grid.values("network"):
        places = grid.places(network=network)
        rows = [row for place in places if (row := grid.row(place, PIPER)) is not None]
        if rows and piper_has_no_plan(PIPER, network):
            plans = sum(row.status == "ok" for row in rows)
            why = next((f": {row.reason}" for row in rows if row.status != "ok"), "")
            yield named_case(network, f"{plans} plans in {len(rows)} cells{why}", -plans, plans == 0)
