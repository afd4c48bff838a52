"""Figure 9: what parallel stages gain at the baseline's micro-batch, and what a larger micro-batch adds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.artefacts.curves import curve
from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result, Table
from pipebench_graphpipe.artefacts.cells import (
    APPENDIX,
    BY_COUNT,
    GRAPH,
    GRAPHPIPES,
    SECTION_7_2,
    Network,
    Place,
    cells,
    user_networks,
)
from pipebench_graphpipe.artefacts.throughputs import Grid, judge_cases, plotted_only, read_grid

DEVICES, SIZES = 32, 10
PARALLEL_GAIN, WHOLE_GAIN = 1.12, 1.25
PARALLEL = Claim(
    name="parallel stages",
    statement="At the sequential planner's micro-batch, stages side by side gain 12 % or more on every model",
    where="section 7.4 (1.12 to 1.40)",
)
WHOLE = Claim(
    name="parallel stages and larger micro-batches",
    statement="With the micro-batch free, GraphPipe gains 25 % or more over the sequential planner on every model",
    where="section 7.4 (1.25 to 1.61)",
)
BOTH = Claim(
    name="both matter",
    statement="On every model stages side by side gain, and a micro-batch of GraphPipe's own gains on top of it",
    where="section 7.4",
)
LARGER = Claim(
    name="the micro-batch is larger",
    statement="On every model GraphPipe's best micro-batch is larger than the sequential planner's",
    where="sections 7.4 and 2",
)
CURVES = Claim(name="the bars", statement="Throughputs as in figure 9", where="figure 9")
NOT_MEMORY = (
    "Memory does not bind in these profiles, so the sequential planner may take large micro-batches too; what is "
    "left is how long the pipelines fill"
)


GIVEN = (
    "a size that is given is profiled, however large, and may run on few replicas; where a planner chooses, as in "
    "figure 6, no replica takes more samples than the largest size that is profiled. So the best of those given "
    "and the planner's own choice differ: "
)
CONTENDERS = (*GRAPHPIPES, BY_COUNT, GRAPH)
DIFFERENT = 0.005
"""Share from which two throughputs of one planner are said to differ."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """Samples a second of one model. own: GraphPipe at its own size, `size`; at: the baseline's size."""

    sequential: float
    parallel: float
    own: float
    at: int
    size: int


class StagesAndMicroBatches:
    """hooks.reproduction.Reproduction."""

    claims = (PARALLEL, WHOLE, BOTH, LARGER, CURVES)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """32 devices; the ten largest sizes that leave two micro-batches or more, and the planner's own choice. In
        full all sizes and models.
        """
        networks = (*APPENDIX, *(SECTION_7_2 if full else ()), *user_networks(profiles))
        return tuple(cell for network in networks for cell in _cells(network, 20 if full else SIZES))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        grid = read_grid(results)
        known = list(_ablations(grid))
        return [
            judge_cases(PARALLEL, _gains(known, PARALLEL_GAIN), f"{PARALLEL_GAIN:g} or more", NOT_MEMORY),
            judge_cases(
                WHOLE,
                [
                    named_case(
                        name,
                        f"{a.own / a.sequential:.2f}",
                        a.own / a.sequential,
                        a.own / a.sequential >= WHOLE_GAIN,
                    )
                    for name, a in known
                ],
                f"{WHOLE_GAIN:g} or more",
                NOT_MEMORY,
            ),
            judge_cases(BOTH, [_both(name, each) for name, each in known], "both ratios above 1", NOT_MEMORY),
            judge_cases(
                LARGER,
                [named_case(name, f"{a.size} for {a.at}", a.size / a.at, a.size > a.at) for name, a in known],
                "a larger size",
                NOT_MEMORY,
            ),
            plotted_only(CURVES),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """Throughput by micro-batch for each model, and the table of the three bars."""
        grid = read_grid(results)
        panels = []
        for network in grid.values("network"):
            curves = tuple(_curve(grid, _fixed_sizes(grid, network), who) for who in CONTENDERS)
            panels.append(
                Panel(title=network, x_label="log2 of the micro-batch", y_label="samples/s", curves=curves)
            )
        rows = [
            (
                name,
                f"{a.sequential:,.0f} (b={a.at})",
                f"{a.parallel:,.0f}",
                f"{a.own:,.0f} (b={a.size})",
                f"{a.parallel / a.sequential:.2f}",
                f"{a.own / a.sequential:.2f}",
            )
            for name, a in _ablations(grid)
        ]
        columns = ("", "sequential", "parallel, same b", "own b", "parallel/seq.", "own/seq.")
        table = Table(title="Simulated samples/s at the best micro-batch", columns=columns, rows=tuple(rows))
        title = "GraphPipe, figure 9: simulated throughput by micro-batch size, 32 devices"
        return Figure(title=title, panels=tuple(panels), tables=(table,), notes=(*_differing(grid), *grid.lost))


def _cells(network: Network, most: int) -> Iterator[Cell]:
    mini_batch = network.samples * DEVICES
    sizes = [2**power for power in range(mini_batch.bit_length()) if 2 ** (power + 1) <= mini_batch][-most:]
    few = [size for size in sizes if mini_batch // size <= 2048]
    yield from cells((network,), (DEVICES,), CONTENDERS, micro_batches=[*few, None])


def _curve(grid: Grid, places: Sequence[Place], who: Contender) -> Curve:
    return curve(who, places, lambda place: _power(place.micro_batch), lambda place: grid.rate(place, who))


def _fixed_sizes(grid: Grid, network: str) -> list[Place]:
    """The places at which the size is given."""
    return [place for place in grid.places(network=network) if place.micro_batch]


def _differing(grid: Grid) -> Iterator[str]:
    """Where a planner that chooses its size does not get what it gets at the best of those given."""
    texts = []
    for network in grid.values("network"):
        for contender in CONTENDERS:
            best = grid.best_place(contender, _fixed_sizes(grid, network))
            free = grid.best_place(contender, grid.places(network=network, micro_batch=0))
            if best is None or free is None:
                continue
            ours, own = _rate(grid, best, contender), _rate(grid, free, contender)
            row = grid.plan_row(free, contender)
            if row is not None and abs(own / ours - 1) > DIFFERENT:
                chosen = f"{own:,.0f} by choice (b={max(row.micro_batch)})"
                texts.append(f"{network}, {contender.label}: {ours:,.0f} given (b={best.micro_batch}), {chosen}")
    if texts:
        yield GIVEN + "; ".join(texts)


def _ablations(grid: Grid) -> Iterator[tuple[str, Ablation]]:
    for network in grid.values("network"):
        places = _fixed_sizes(grid, network)
        slow = grid.best_place(BY_COUNT, places)
        for fast in GRAPHPIPES:
            own = grid.best_place(fast, places)
            if slow is not None and own is not None and (parallel := grid.rate(slow, fast)):
                sequential, best = _rate(grid, slow, BY_COUNT), _rate(grid, own, fast)
                ablation = Ablation(sequential, parallel, best, slow.micro_batch, own.micro_batch)
                yield f"{fast.label}, {network}", ablation


def _rate(grid: Grid, place: Place, contender: Contender) -> float:
    rate = grid.rate(place, contender)
    assert rate is not None
    return rate


def _gains(known: Sequence[tuple[str, Ablation]], least: float) -> Iterator[Case]:
    for name, each in known:
        gain = each.parallel / each.sequential
        yield named_case(name, f"{gain:.2f} (both at b={each.at})", gain, gain >= least)


def _both(name: str, each: Ablation) -> Case:
    schedule, size = each.parallel / each.sequential, each.own / each.parallel
    text = f"{schedule:.2f} by stages, {size:.2f} by size"
    return named_case(name, text, min(schedule, size), schedule > 1 < size)


def _power(size: int) -> float:
    return float(size.bit_length() - 1)
