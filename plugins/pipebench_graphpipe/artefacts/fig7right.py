"""Figure 7, right: throughput by the micro-batch size, which is given to every planner."""

from collections.abc import Iterator, Sequence

from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result
from pipebench_graphpipe.artefacts.cells import (
    BEST,
    BY_COUNT,
    BY_TARGET,
    DATA,
    GRAPH,
    MMT,
    MMT_2,
    PAPER,
    cells,
    refuse,
)
from pipebench_graphpipe.artefacts.throughputs import (
    COLUMNS,
    Grid,
    about,
    depth_cases,
    growth_cases,
    judge_cases,
    pairs,
    plotted_only,
    read_grid,
    text_of,
    throughput_panel,
    throughput_table,
)

MINI_BATCH, DEVICES = 128, 8
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
ALWAYS = Claim(
    name="always ahead",
    statement="At every micro-batch size GraphPipe's throughput is above the sequential planner's",
    where="section 7.3",
)
BY_DEPTH = Claim(
    name="the gap is the depth",
    statement="At one micro-batch size the gap is that of the depths: GraphPipe's pipeline is the shallower one",
    where="section 7.3",
)
GROWS = Claim(
    name="larger micro-batches, larger gap",
    statement="The ratio of throughputs never falls when the micro-batch grows: there are fewer to fill with",
    where="sections 2 and 7.3 (warm-up and cool-down weigh more when there are fewer micro-batches)",
)
CURVES = Claim(name="the curves", statement="Throughputs as in figure 7, right", where="figure 7, right")
WHOLE = (
    "At the largest sizes both planners give up stages for replicas, each at its own size, down to one stage; the "
    "ratio moves with these steps"
)
CONTENDERS = (BEST, PAPER, BY_COUNT, BY_TARGET, GRAPH, DATA)


class ThroughputByMicroBatch:
    """hooks.reproduction.Reproduction."""

    claims = (ALWAYS, BY_DEPTH, GROWS, CURVES)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """8 devices, mini-batch 128; two and four branches: the section has both numbers."""
        refuse(profiles, "the Multi-Modal Transformer")
        sizes = SIZES if full else SIZES[:-1]
        return tuple(cells((MMT_2, MMT), (DEVICES,), CONTENDERS, mini_batch=MINI_BATCH, micro_batches=sizes))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        grid = read_grid(results)
        return [
            judge_cases(ALWAYS, _ahead(grid), "a ratio above 1 at every size", WHOLE),
            judge_cases(BY_DEPTH, _shallower(grid), "a smaller depth at every size", WHOLE),
            judge_cases(GROWS, _grows(grid), "no step to a larger size lowers the ratio", WHOLE),
            plotted_only(CURVES),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each number of branches."""
        grid = read_grid(results)
        panels = [
            throughput_panel(grid, network, grid.places(network=network), "micro_batch", CONTENDERS)
            for network in grid.values("network")
        ]
        ratios = (("GP/PD", BEST, BY_COUNT), ("paper/PD", PAPER, BY_COUNT), ("GP/PD+G", BEST, GRAPH))
        table = throughput_table(grid, COLUMNS, grid.places(), CONTENDERS, ratios)
        title = "GraphPipe, figure 7 right: simulated throughput by micro-batch size, 8 devices, mini-batch 128"
        return Figure(title=title, panels=tuple(panels), tables=(table,), notes=grid.lost)


def _pairs(grid: Grid) -> list[tuple[str, Contender, Contender, str]]:
    return [
        (f"{name}, {network}", fast, slow, network)
        for name, fast, slow in pairs()
        for network in grid.values("network")
    ]


def _ahead(grid: Grid) -> Iterator[Case]:
    for name, fast, slow, network in _pairs(grid):
        ratios = grid.ratios(fast, slow, places=grid.places(network=network))
        if ratios:
            behind = [about(place) for place, ratio in ratios.items() if ratio <= 1]
            text = text_of(list(ratios.values())) + (f" (not {'; '.join(behind)})" if behind else "")
            yield named_case(name, text, min(ratios.values()), not behind)


def _shallower(grid: Grid) -> Iterator[Case]:
    for name, fast, slow, network in _pairs(grid):
        yield from depth_cases(grid, name, fast, slow, grid.places(network=network))


def _grows(grid: Grid) -> Iterator[Case]:
    for name, fast, slow, network in _pairs(grid):
        ratios = grid.ratios(fast, slow, places=grid.places(network=network))
        yield from growth_cases(name, list(ratios.values()))
