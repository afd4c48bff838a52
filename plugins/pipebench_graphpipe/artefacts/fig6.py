"""Figure 6: throughput over devices on the three multi-branch models, the sequential one beside them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result
from pipebench.domain.row import Row
from pipebench_graphpipe.artefacts.cells import (
    APPENDIX,
    BASELINES,
    BEST,
    BY_COUNT,
    CHAIN,
    DATA,
    DEVICES,
    EVERYONE,
    GRAPH,
    GRAPHPIPES,
    LEVELS,
    PAPER,
    PIPER,
    SECTION_7_2,
    SEQUENTIAL,
    Place,
    cells,
    user_networks,
)
from pipebench_graphpipe.artefacts.throughputs import (
    COLUMNS,
    Grid,
    about,
    judge_cases,
    pairs,
    piper_cases,
    plotted_only,
    read_grid,
    text_of,
    throughput_panel,
    throughput_table,
)

AHEAD = Claim(
    name="ahead in all but one",
    statement="GraphPipe's throughput is above the sequential planner's in all cells but at most one",
    where="section 7.1",
)
WIDENS = Claim(
    name="the gap widens",
    statement="GraphPipe's throughput over the sequential planner's never falls when devices are added",
    where="section 7.1",
)
UP_TO = Claim(
    name="up to 1.6",
    statement="The largest ratio of throughputs, GraphPipe's over the sequential planner's, is 1.6 or more",
    where="abstract, sections 1 and 9 (1.61)",
)
NO_PIPER = Claim(
    name="Piper has no plan",
    statement="Piper finds no plan for DLRM and CANDLE-Uno: its states are exponential in the branches",
    where="section 7.1",
)
DEEPER = Claim(
    name="more devices, more stages in a row",
    statement="The depth of the sequential planner's pipeline never falls when devices are added, and rises",
    where="section 7.1",
)
SHALLOWER = Claim(
    name="faster where shallower",
    statement="Wherever GraphPipe is faster, its pipeline is shallower than the sequential planner's",
    where="section 7.1",
)
CURVES = Claim(
    name="the curves", statement="Throughputs in samples a second as in the bars of figure 6", where="figure 6"
)
NEVER_BEHIND = Claim(
    name="variant best is never behind",
    statement="GraphPipe, variant best, is at least as fast as every baseline in every cell",
    where="not in the paper: what this project asks of its own variant",
)
SCHEDULE = Claim(
    name="the partition is worth something",
    statement="GraphPipe is faster than the sequential planner's partition run with true dependencies",
    where="not in the paper, which compares with sequential execution only",
)
SAME_SHARE = (
    "The mini-batches of appendix A.2 grow with the devices, and so do the micro-batches that a deeper pipeline "
    "fills with: on mmt the share of filling stays the same. On dlrm and candle-uno both planners take replicas "
    "in place of stages, by the bottleneck alone, and few stages leave little to fill"
)


class ThroughputByDevices:
    """hooks.reproduction.Reproduction."""

    claims = (AHEAD, WIDENS, UP_TO, NO_PIPER, DEEPER, SHALLOWER, CURVES, NEVER_BEHIND, SCHEDULE)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """Branches as in appendix A.2 and the chain of A.3; in full those of section 7.2 and level order too."""
        networks = (*APPENDIX, CHAIN, *(SECTION_7_2 if full else ()), *user_networks(profiles))
        return tuple(cells(networks, DEVICES, (*EVERYONE, LEVELS) if full else EVERYONE))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        grid = read_grid(results)
        branched = [place for place in grid.places() if place.network != CHAIN.key]
        return [
            judge_cases(AHEAD, _ahead(grid, branched), "a ratio above 1 in all cells but one", SAME_SHARE),
            judge_cases(WIDENS, _widens(grid, branched), "no step to more devices lowers the ratio", SAME_SHARE),
            judge_cases(UP_TO, _largest(grid, branched), "1.6 or more in some cell"),
            judge_cases(NO_PIPER, piper_cases(grid), "no cell of theirs with a plan"),
            judge_cases(
                DEEPER, _deeper(grid, branched), "no step lowers the depth, the last is deeper than the first"
            ),
            judge_cases(SHALLOWER, _shallower(grid, branched), "no cell where it is faster and not shallower"),
            plotted_only(CURVES),
            judge_cases(NEVER_BEHIND, _never_behind(grid), "no ratio below 1, the sequential model included"),
            judge_cases(
                SCHEDULE,
                _over(grid, branched, GRAPH),
                "a ratio above 1.01 in half of the cells or more",
                "Most of GraphPipe's gain is the execution: with true dependencies PipeDream's own partition has "
                "nearly all of it",
            ),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each network, and the table of throughputs and ratios."""
        grid = read_grid(results)
        panels = [
            throughput_panel(grid, network, grid.places(network=network), "devices", (*EVERYONE, LEVELS))
            for network in grid.values("network")
        ]
        ratios = (
            ("GP/PD", BEST, BY_COUNT),
            ("paper/PD", PAPER, BY_COUNT),
            ("GP/PD+G", BEST, GRAPH),
            ("GP/DP", BEST, DATA),
        )
        table = throughput_table(grid, COLUMNS, grid.places(), EVERYONE, ratios)
        title = "GraphPipe, figure 6: simulated throughput by number of devices"
        return Figure(title=title, panels=tuple(panels), tables=(table,), notes=grid.lost)


def _ahead(grid: Grid, places: Sequence[Place]) -> Iterator[Case]:
    for name, fast, slow in pairs():
        ratios = grid.ratios(fast, slow, places=places)
        if ratios:
            behind = [place for place, ratio in ratios.items() if ratio <= 1]
            text = f"{len(ratios) - len(behind)} of {len(ratios)} cells, least {min(ratios.values()):.2f}"
            text += f" (not {'; '.join(map(about, behind))})" if behind else ""
            yield named_case(name, text, min(ratios.values()), len(behind) <= 1)


def _widens(grid: Grid, places: Sequence[Place]) -> Iterator[Case]:
    for name, fast, slow in pairs():
        texts, falls = [], 0
        for network in dict.fromkeys(place.network for place in places):
            line = [place for place in places if place.network == network]
            known = list(grid.ratios(fast, slow, places=line).values())
            if known:
                falls += sum(after < before for before, after in pairwise(known))
                texts.append(f"{network} {text_of(known)}")
        if texts:
            yield named_case(name, "; ".join(texts), -falls, falls == 0)


def _largest(grid: Grid, places: Sequence[Place]) -> Iterator[Case]:
    for name, fast, slow in pairs():
        ratios = grid.ratios(fast, slow, places=places)
        if ratios:
            where, most = max(ratios.items(), key=lambda item: item[1])
            yield named_case(name, f"{most:.2f} ({about(where)})", most, most >= 1.6)


def _deeper(grid: Grid, places: Sequence[Place]) -> Iterator[Case]:
    for slow in SEQUENTIAL:
        for network in dict.fromkeys(place.network for place in places):
            line = [place for place in places if place.network == network]
            depths = [depth for place in line if (depth := grid.value(place, slow, _depth)) is not None]
            if len(depths) > 1:
                rises = depths == sorted(depths) and depths[-1] > depths[0]
                text = text_of(depths, lambda depth: f"{depth:g}")
                yield named_case(f"{slow.label}, {network}", text, depths[-1] - depths[0], rises)


def _depth(row: Row) -> float | None:
    return row.depth


def _shallower(grid: Grid, places: Sequence[Place]) -> Iterator[Case]:
    for name, fast, slow in pairs():
        both = list(grid.both(fast, slow, places))
        faster = [
            (place, one.depth or 0, other.depth or 0)
            for place, one, other in both
            if (one.throughput or 0) > (other.throughput or 0)
        ]
        if both:
            against = [about(place) for place, depth, deep in faster if depth >= deep]
            text = f"shallower in {len(faster) - len(against)} of the {len(faster)} cells where it is faster"
            text += f" (not {'; '.join(against)})" if against else ""
            yield named_case(name, text, -len(against), not against)


def _never_behind(grid: Grid) -> Iterator[Case]:
    for slow in (*BASELINES, LEVELS, PIPER, PAPER):
        ratios = grid.ratios(BEST, slow).values()
        if ratios:
            text = f"least ratio {min(ratios):.3f} in {len(ratios)} cells"
            yield named_case(slow.label, text, min(ratios), min(ratios) >= 1)


def _over(grid: Grid, places: Sequence[Place], slow: Contender) -> Iterator[Case]:
    for fast in GRAPHPIPES:
        ratios = grid.ratios(fast, slow, places=places).values()
        if ratios:
            more = sum(ratio > 1.01 for ratio in ratios)
            text = f"above 1.01 in {more} of {len(ratios)} cells, {min(ratios):.2f} to {max(ratios):.2f}"
            name, share = f"{fast.label} / {slow.label}", more / len(ratios)
            yield named_case(name, text, share, share >= 0.5)
