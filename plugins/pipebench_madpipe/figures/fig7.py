"""Figure 7: PipeDream's period over MadPipe's, geometric means over P and beta, by network and memory."""

from collections.abc import Sequence
from statistics import geometric_mean

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_madpipe.figures.contenders import BASELINES, CONTENDERS, IMPROVED, MADPIPES, Contender
from pipebench_madpipe.figures.grid import BANDWIDTH_GB_S, DEVICES, MEMORY_GB, NETWORKS, SMALL, Grid
from pipebench_madpipe.figures.points import Point, Points, points_of
from pipebench_madpipe.figures.ratios import LARGER, Case, every_pair, judged, ratios

SECTION = "section 5.2, on figure 7"
TIGHT_GB = 10
OVER_20 = Claim(
    name="over 20 % below 10 GB",
    statement="For every network and every memory below 10 GB, the geometric mean over P and beta is above 1.2",
    quote=(
        "the overhead of PipeDream over MadPipe is consistently over 20% when the available memory is below 10GB"
    ),
    where=SECTION,
)
WIDE_RANGE = Claim(
    name="a gain in a wide range, more so with little memory",
    statement="The geometric mean over all cells is above 1, and larger below 10 GB than from 10 GB on",
    quote=(
        "the performance improvement offered by MadPipe is valid in a wide range of scenarios, especially for "
        "lower values of memory"
    ),
    where=SECTION,
)
SUBSET = Grid(NETWORKS, (2, 4, 8), (4, 8, 12), paper_on=SMALL, paper_devices=(2, 4))
FULL = Grid(NETWORKS, DEVICES, MEMORY_GB, BANDWIDTH_GB_S)


class Fig7:
    """hooks.reproduction.Reproduction."""

    claims = (OVER_20, WIDE_RANGE)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """The four networks, and the user's profiles; in the subset the paper's own variant where it is quick."""
        return tuple((FULL if full else SUBSET).cells(profiles))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Both claims."""
        points = points_of(results)
        pairs = every_pair(points, points.outcomes)
        low = [p for p in points.outcomes if p.memory_gb < TIGHT_GB]
        high = [p for p in points.outcomes if p.memory_gb >= TIGHT_GB]
        tight = {(r.slow.key, r.fast.key): r for r in every_pair(points, low)}
        roomy = {(r.slow.key, r.fast.key): r for r in every_pair(points, high)}
        wide = []
        for pair in pairs:
            key = (pair.slow.key, pair.fast.key)
            if key in tight and key in roomy:
                below, above = tight[key].mean, roomy[key].mean
                text = f"{pair.name}: {pair.mean:.2f} in all, {below:.2f} below 10 GB, {above:.2f} from 10 GB on"
                wide.append(Case(pair.name, text, pair.mean, pair.mean > 1 and below > above))
        return [
            judged(OVER_20, _over_20(points, low), f"the smallest of the geometric means is above {LARGER:g}"),
            judged(WIDE_RANGE, wide, "above 1 in all, and larger below 10 GB; infeasible cells count nowhere"),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each network: the contenders over MadPipe, by memory."""
        points = points_of(results)
        panels = [
            Panel(
                title=network,
                x_label="memory of a device (GB)",
                y_label="period / MadPipe's (geometric mean)",
                curves=tuple(
                    curve
                    for contender in CONTENDERS
                    if contender is not IMPROVED
                    and ((curve := _curve(points, network, contender)).points or curve.infeasible)
                ),
            )
            for network in points.networks
        ]
        title = "MadPipe, figure 7: periods over MadPipe's, geometric means over P and beta (above 1: slower)"
        none = sum(points.infeasible(p, IMPROVED.key) for p in points.outcomes)
        note = f"{IMPROVED.label} itself has no schedule in {none} of {len(points.outcomes)} cells: no ratio there"
        return Figure(title=title, panels=tuple(panels), notes=(note, *points.lost))


def _curve(points: Points, network: str, contender: Contender) -> Curve:
    """The infeasible ones are the cells that MadPipe can schedule and the contender cannot."""
    own = [p for p in points.outcomes if p.network == network]
    means: list[tuple[float, float]] = []
    missing: list[float] = []
    for memory in sorted({p.memory_gb for p in own}):
        pair = ratios(points, contender, IMPROVED, (p for p in own if p.memory_gb == memory))
        if pair.values:
            means.append((memory, pair.mean))
        missing += [memory] * pair.missing
    return Curve(label=contender.label, colour=contender.colour, points=tuple(means), infeasible=tuple(missing))


def _over_20(points: Points, low: list[Point]) -> list[Case]:
    found = []
    for fast in MADPIPES:
        for slow in BASELINES:
            means: dict[tuple[str, float], float] = {}
            missing = 0
            for network, memory in sorted({(p.network, p.memory_gb) for p in low}):
                here = [p for p in low if (p.network, p.memory_gb) == (network, memory)]
                pair = ratios(points, slow, fast, here)
                missing += pair.missing
                if pair.values:
                    means[network, memory] = pair.mean
            if means:
                (network, memory), least = min(means.items(), key=lambda item: item[1])
                over = sum(mean > LARGER for mean in means.values())
                text = (
                    f"{slow.label} / {fast.label}: {geometric_mean(means.values()):.2f}, {over} of {len(means)} "
                    f"means above {LARGER:g}, least {least:.2f} ({network}, {memory:g} GB); "
                    f"{missing} more infeasible"
                )
                found.append(Case(f"{slow.label} / {fast.label}", text, least, least > LARGER))
    return found
