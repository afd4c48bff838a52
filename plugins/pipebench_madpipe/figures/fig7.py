"""Figure 7: PipeDream's period over MadPipe's, geometric means over P and beta, by network and memory."""

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from pipebench.artefacts.curves import with_marks
from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_madpipe.figures.grid import (
    BANDWIDTH_GB_S,
    BASELINES,
    CONTENDERS,
    DEVICES,
    IMPROVED,
    MADPIPES,
    MEMORY_GB,
    NETWORKS,
    SMALL,
    CellGrid,
)
from pipebench_madpipe.figures.periods import (
    LARGER,
    Periods,
    Place,
    every_pair,
    judge_cases,
    period_ratios,
    read_periods,
)

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
SUBSET = CellGrid(NETWORKS, (2, 4, 8), (4, 8, 12), paper_on=SMALL, paper_devices=(2, 4))
FULL = CellGrid(NETWORKS, DEVICES, MEMORY_GB, BANDWIDTH_GB_S)


class PeriodsOverMadPipe:
    """hooks.reproduction.Reproduction."""

    claims = (OVER_20, WIDE_RANGE)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """The four networks, and the user's profiles; in the subset the paper's own variant where it is quick."""
        return tuple((FULL if full else SUBSET).cells(profiles))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Both claims."""
        periods = read_periods(results)
        low = [place for place in periods.grid.places() if place.memory_gb < TIGHT_GB]
        high = [place for place in periods.grid.places() if place.memory_gb >= TIGHT_GB]
        return [
            judge_cases(
                OVER_20, _over_20(periods, low), f"the smallest of the geometric means is above {LARGER:g}"
            ),
            judge_cases(
                WIDE_RANGE,
                _wide_range(periods, low, high),
                "above 1 in all, and larger below 10 GB; infeasible cells count nowhere",
            ),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each network: the contenders over MadPipe, by memory."""
        periods = read_periods(results)
        panels = tuple(
            Panel(
                title=network,
                x_label="memory of a device (GB)",
                y_label="period / MadPipe's (geometric mean)",
                curves=with_marks(_curve(periods, network, who) for who in CONTENDERS if who is not IMPROVED),
            )
            for network in periods.grid.values("network")
        )
        title = "MadPipe, figure 7: periods over MadPipe's, geometric means over P and beta (above 1: slower)"
        places = periods.grid.places()
        none = sum(periods.infeasible(place, IMPROVED) for place in places)
        note = f"{IMPROVED.label} itself has no schedule in {none} of {len(places)} cells: no ratio there"
        return Figure(title=title, panels=panels, notes=(note, *periods.lost))


def _curve(periods: Periods, network: str, who: Contender) -> Curve:
    """Ratios by memory. A cell counts as infeasible where MadPipe has a schedule and the contender has none."""
    means: list[tuple[float, float]] = []
    missing: list[float] = []
    for memory_gb in sorted(periods.grid.values("memory_gb", network=network)):
        pair = period_ratios(periods, who, IMPROVED, periods.grid.places(network=network, memory_gb=memory_gb))
        if pair.values:
            means.append((memory_gb, pair.mean))
        missing += [memory_gb] * pair.missing
    return Curve(label=who.label, colour=who.colour, points=tuple(means), infeasible=tuple(missing))


def _over_20(periods: Periods, low: Sequence[Place]) -> Iterator[Case]:
    for fast in MADPIPES:
        for slow in BASELINES:
            means: dict[tuple[str, float], float] = {}
            missing = 0
            for network, memory_gb in sorted({(place.network, place.memory_gb) for place in low}):
                here = [place for place in low if (place.network, place.memory_gb) == (network, memory_gb)]
                pair = period_ratios(periods, slow, fast, here)
                missing += pair.missing
                if pair.values:
                    means[network, memory_gb] = pair.mean
            if means:
                (network, memory_gb), least = min(means.items(), key=lambda item: item[1])
                over = sum(mean > LARGER for mean in means.values())
                text = (
                    f"{geometric_mean(means.values()):.2f}, {over} of {len(means)} means above {LARGER:g}, "
                    f"least {least:.2f} ({network}, {memory_gb:g} GB); {missing} more infeasible"
                )
                yield named_case(f"{slow.label} / {fast.label}", text, least, least > LARGER)


def _wide_range(periods: Periods, low: Sequence[Place], high: Sequence[Place]) -> Iterator[Case]:
    tight = {pair.name: pair.mean for pair in every_pair(periods, low)}
    roomy = {pair.name: pair.mean for pair in every_pair(periods, high)}
    for pair in every_pair(periods, periods.grid.places()):
        if pair.name in tight and pair.name in roomy:
            below, above = tight[pair.name], roomy[pair.name]
            text = f"{pair.mean:.2f} in all, {below:.2f} below 10 GB, {above:.2f} from 10 GB on"
            yield named_case(pair.name, text, pair.mean, pair.mean > 1 and below > above)
