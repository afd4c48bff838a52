"""Figure 7, left: the gain over PipeDream by the number of CANDLE-Uno's branches."""

from collections.abc import Iterator, Sequence

from pipebench.artefacts.curves import curve, with_points
from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_graphpipe.artefacts.cells import (
    BEST,
    BY_COUNT,
    BY_TARGET,
    DATA,
    GRAPH,
    GRAPHPIPES,
    PAPER,
    PIPER,
    Network,
    Place,
    cells,
    refuse,
)
from pipebench_graphpipe.artefacts.throughputs import (
    COLUMNS,
    Grid,
    depth_cases,
    growth_cases,
    judge_cases,
    plotted_only,
    read_grid,
    throughput_table,
)

BRANCHES = (2, 4, 8, 16)
TWICE, NOISE = 1.95, 0.005
GROWS = Claim(
    name="the gain grows with the branches",
    statement="GraphPipe's throughput over the sequential planner's never falls when branches are added",
    where="section 7.3",
)
DOUBLE = Claim(
    name="twice at 16 branches",
    statement="At 16 branches GraphPipe's throughput is twice the sequential planner's",
    where="section 7.3",
)
SHALLOWER = Claim(
    name="shallower at every count",
    statement="GraphPipe's pipeline is shallower than the sequential planner's at every number of branches",
    where="section 7.3",
)
NO_PIPER = Claim(
    name="Piper has no plan", statement="Piper finds no plan for CANDLE-Uno", where="section 7.3, footnote"
)
CURVES = Claim(name="the curves", statement="Normalised throughputs as in figure 7, left", where="figure 7, left")
MANY = (
    "The figure's mini-batch and devices are not in the text. With appendix A.2's 1024 samples a device there are "
    "enough micro-batches to hide most of the filling, and on 32 devices both planners pick replicas by the "
    "bottleneck alone; with 64 a device the gain is what the paper tells. It stops growing where there are more "
    "branches than devices: the sequential pipeline cannot get deeper"
)
CONTENDERS = (BEST, PAPER, BY_COUNT, GRAPH, DATA, PIPER)


def network(model: str, branches: int, samples: int) -> Network:
    """A model of so many branches."""
    return Network(f"{model}-{branches}", f"{model}[branches={branches}]", samples)


class GainByBranches:
    """hooks.reproduction.Reproduction."""

    claims = (GROWS, DOUBLE, SHALLOWER, NO_PIPER, CURVES)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """8 and 32 devices, in full 16 too; CANDLE-Uno at two mini-batches, and the Multi-Modal Transformer."""
        refuse(profiles, "CANDLE-Uno of several branches")
        grids = (("candle-uno", 1024), ("candle-uno", 64), ("mmt", 16))
        networks = [network(model, branches, samples) for model, samples in grids for branches in BRANCHES]
        if full:
            return tuple(cells(networks, (8, 16, 32), (*CONTENDERS, BY_TARGET)))
        return tuple(cells(networks, (8, 32), CONTENDERS))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order. The Multi-Modal Transformer is not the paper's: it is in the table alone."""
        grid = read_grid(results)
        rule = f"no step to more branches lowers the ratio (by more than {NOISE:g})"
        return [
            judge_cases(GROWS, _grows(grid), rule, MANY),
            judge_cases(DOUBLE, _double(grid), f"a ratio of {TWICE:g} or more", MANY),
            judge_cases(
                SHALLOWER,
                _shallower(grid),
                "a smaller depth at every number of branches",
                "By the bottleneck alone a planner may take few stages of many replicas, which are as deep",
            ),
            judge_cases(
                NO_PIPER,
                _without_piper(grid),
                "no plan in any cell",
                "Two and four branches of four layers have few downsets",
            ),
            plotted_only(CURVES),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each model, mini-batch and number of devices: throughput over PipeDream's by branches."""
        grid = read_grid(results)
        panels = []
        for title, places in _lines(grid):
            curves = with_points(_curve(grid, places, who) for who in CONTENDERS)
            panels.append(
                Panel(title=title, x_label="branches", y_label="throughput / PipeDream k's", curves=curves)
            )
        ratios = (("GP/PD", BEST, BY_COUNT), ("paper/PD", PAPER, BY_COUNT), ("GP/PD+G", BEST, GRAPH))
        table = throughput_table(grid, COLUMNS, grid.places(), CONTENDERS, ratios)
        title = "GraphPipe, figure 7 left: simulated throughput over PipeDream's by number of branches"
        return Figure(title=title, panels=tuple(panels), tables=(table,), notes=grid.lost)


def _branches(place: Place) -> int:
    return int(place.network.rpartition("-")[2])


def _curve(grid: Grid, places: Sequence[Place], who: Contender) -> Curve:
    return curve(
        who,
        places,
        _branches,
        lambda place: grid.ratio(place, who, BY_COUNT),
        lambda place: grid.has_no_plan(place, who),
    )


def _lines(grid: Grid) -> Iterator[tuple[str, list[Place]]]:
    """Places that differ in their branches alone."""
    lines: dict[str, list[Place]] = {}
    for place in sorted(grid.places(), key=lambda place: place.devices):
        model, samples = place.network.rpartition("-")[0], place.mini_batch // place.devices
        lines.setdefault(f"{model}, {samples} a device, {place.devices} devices", []).append(place)
    yield from lines.items()


def _cases(grid: Grid) -> Iterator[tuple[str, Contender, Contender, list[Place]]]:
    for title, places in _lines(grid):
        if title.startswith("candle"):
            for fast in GRAPHPIPES:
                for slow in (BY_COUNT, BY_TARGET):
                    yield f"{fast.label} / {slow.label}, {title.partition(', ')[2]}", fast, slow, places


def _grows(grid: Grid) -> Iterator[Case]:
    for name, fast, slow, places in _cases(grid):
        yield from growth_cases(name, list(grid.ratios(fast, slow, places=places).values()), NOISE)


def _double(grid: Grid) -> Iterator[Case]:
    for name, fast, slow, places in _cases(grid):
        ratio = grid.ratio(places[-1], fast, slow)
        if ratio is not None and _branches(places[-1]) == BRANCHES[-1]:
            yield named_case(name, f"{ratio:.2f}", ratio, ratio >= TWICE)


def _shallower(grid: Grid) -> Iterator[Case]:
    for name, fast, slow, places in _cases(grid):
        yield from depth_cases(grid, name, fast, slow, places)


def _without_piper(grid: Grid) -> Iterator[Case]:
    for branches in BRANCHES:
        rows = [
            row
            for place, row in grid.rows(PIPER)
            if place.network.startswith("candle") and _branches(place) == branches
        ]
        if rows:
            plans = sum(row.status == "ok" for row in rows)
            text = f"{plans} plans in {len(rows)} cells"
            yield named_case(f"{branches} branches", text, -plans, plans == 0)
