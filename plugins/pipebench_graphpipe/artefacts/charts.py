"""Curves of throughput, and tables of it."""

from collections.abc import Callable, Sequence

from pipebench.domain.artefact import Curve, Panel, Table
from pipebench_graphpipe.artefacts.contenders import Contender
from pipebench_graphpipe.artefacts.measured import Measured, Place

COLUMNS = (
    "Simulated samples/s (GP: GraphPipe best; paper: variant paper; PD: PipeDream k; PD+G: its partition with "
    "true dependencies; DP: data parallel)"
)
THOUSAND = 1000
Ratio = tuple[str, Contender, Contender]


def throughput_panel(
    found: Measured, title: str, places: Sequence[Place], axis: str, contenders: Sequence[Contender]
) -> Panel:
    """Samples a second, or thousands of them, along an axis of the places."""
    rates = [found.throughput(place, contender) or 0.0 for place in places for contender in contenders]
    unit = THOUSAND if max(rates, default=0.0) >= 10 * THOUSAND else 1
    curves = []
    for contender in contenders:
        points = [
            (float(getattr(place, axis)), value / unit)
            for place in places
            if (value := found.throughput(place, contender)) is not None
        ]
        missing = tuple(float(getattr(place, axis)) for place in places if found.refused(place, contender))
        if points:
            curves.append(
                Curve(label=contender.label, colour=contender.colour, points=tuple(points), infeasible=missing)
            )
    label = "samples/s" if unit == 1 else "thousand samples/s"
    return Panel(title=title, x_label=axis.replace("_", "-"), y_label=label, curves=tuple(curves))


def throughput_table(
    found: Measured,
    title: str,
    places: Sequence[Place],
    contenders: Sequence[Contender],
    ratios: Sequence[Ratio] = (),
) -> Table:
    """A row for each place: samples a second, then ratios of them."""
    rows = []
    axes = _axes(places)
    for place in places:
        rates = [_rate(found, place, contender) for contender in contenders]
        over = [found.ratio(place, high, low) for _, high, low in ratios]
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


def _rate(found: Measured, place: Place, contender: Contender) -> str:
    value = found.throughput(place, contender)
    if value is None:
        return "none" if found.refused(place, contender) else "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
