"""Figure 8: speedup over the whole network on one device, by number of devices."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import geometric_mean

from pipebench.artefacts.curves import curve, with_marks
from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_madpipe.figures.grid import (
    BANDWIDTH_GB_S,
    BASELINES,
    CONTENDERS,
    DEVICES,
    MADPIPES,
    NETWORKS,
    SMALL,
    CellGrid,
    sequential_cells,
)
from pipebench_madpipe.figures.periods import Periods, Place, every_pair, judge_cases, pair_cases, read_periods

SECTION = "section 5.2, on figure 8"
LARGE_GB = 12
DRAMATIC = 1.2
GOOD = Claim(
    name="good scalability with large memory",
    statement="From 12 GB on, MadPipe's speedup never falls when a device is added",
    quote=(
        "the pipelined model parallelism achieves a good scalability for settings with large memory like M = 12 "
        "or 16"
    ),
    where=SECTION,
)
BETTER = Claim(
    name="MadPipe scales better than PipeDream",
    statement="With the most devices, MadPipe's speedup is above PipeDream's (geometric mean)",
    quote="MadPipe exhibits better scalability than PipeDream",
    where=SECTION,
)
WORSE = Claim(
    name="less memory, less speedup",
    statement="The speedup with the least memory that has a schedule is below that with the most (geometric mean)",
    quote=(
        "When less memory is available, it is more difficult to use all the computing resources efficiently and "
        "the speedup gets worse."
    ),
    where=SECTION,
)
BANDWIDTH = Claim(
    name="bandwidth changes little",
    statement="Doubling the bandwidth gains less than 20 % (geometric mean)",
    quote="Increasing the bandwidth does not dramatically improve this behavior",
    where=SECTION,
)
SUBSET = CellGrid(NETWORKS, (2, 4, 8), (6, 12), paper_on=SMALL, paper_devices=(2, 4))
FASTER = CellGrid(NETWORKS, (8,), (6, 12), (24,), paper_on=SMALL, paper_devices=())
FULL = CellGrid(NETWORKS, DEVICES, (4, 6, 8, 12, 16), BANDWIDTH_GB_S)


class SpeedupsByDevices:
    """hooks.reproduction.Reproduction."""

    claims = (GOOD, BETTER, WORSE, BANDWIDTH)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """The grid, 24 GB/s with 8 devices only in the subset, and each network on one device."""
        grids = (FULL,) if full else (SUBSET, FASTER)
        on_one = sequential_cells(NETWORKS, profiles)
        return (*on_one, *(cell for grid in grids for cell in grid.cells(profiles)))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        periods = read_periods(results)
        most = max(periods.grid.values("devices"), default=0)
        pairs = every_pair(periods, periods.grid.places(devices=most))
        by_memory = list(periods.lines("network", "devices", "bandwidth_gb_s").values())
        by_bandwidth = [line[::-1] for line in periods.lines("network", "devices", "memory_gb").values()]
        return [
            judge_cases(GOOD, _scaling(periods), "no step to more devices lowers the speedup"),
            judge_cases(
                BETTER,
                pair_cases(pairs, lambda p: p.mean, lambda p: p.mean > 1),
                f"at P = {most}, period over period",
            ),
            judge_cases(
                WORSE,
                _ends(periods, by_memory, lambda ratio: ratio < 1, "least memory / most"),
                "speedup with the least memory / with the most is below 1, the rest being equal",
            ),
            judge_cases(
                BANDWIDTH,
                _ends(periods, by_bandwidth, lambda ratio: ratio < DRAMATIC, "highest bandwidth / lowest"),
                f"period at 12 GB/s / at 24 GB/s is below {DRAMATIC:g}",
            ),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each network, memory and bandwidth: speedup by number of devices."""
        periods = read_periods(results)
        panels = tuple(
            Panel(
                title=f"{network}, {memory_gb:g} GB, {bandwidth:g} GB/s",
                x_label="devices",
                y_label="speedup over one device",
                curves=with_marks(_curve(periods, line, who) for who in CONTENDERS),
            )
            for (network, bandwidth, memory_gb), line in periods.lines(
                "network", "bandwidth_gb_s", "memory_gb"
            ).items()
            if network in periods.sequential_s and len(line) > 1
        )
        title = "MadPipe, figure 8: speedup over sequential execution, U(1, L) / period"
        return Figure(title=title, panels=panels, notes=periods.lost)


def speedup(periods: Periods, place: Place, who: Contender) -> float | None:
    """U(1, L) / period; None where there is no schedule or U(1, L) was not run."""
    period_s, whole_s = periods.period_s(place, who), periods.sequential_s.get(place.network)
    return whole_s / period_s if period_s and whole_s else None


def _curve(periods: Periods, line: Sequence[Place], who: Contender) -> Curve:
    return curve(
        who,
        line,
        lambda place: place.devices,
        lambda place: speedup(periods, place, who),
        lambda place: periods.infeasible(place, who),
    )


def _scaling(periods: Periods) -> Iterator[Case]:
    for who in MADPIPES:
        steps = falls = 0
        efficiency: list[float] = []
        for (_, memory_gb, _), line in periods.lines("network", "memory_gb", "bandwidth_gb_s").items():
            if memory_gb < LARGE_GB:
                continue
            known = [(p.devices, value) for p in line if (value := speedup(periods, p, who)) is not None]
            steps += max(0, len(known) - 1)
            falls += sum(after < before * (1 - 1e-9) for (_, before), (_, after) in pairwise(known))
            efficiency += [known[-1][1] / known[-1][0]] if known else []
        if steps:
            mean = geometric_mean(efficiency)
            text = f"{falls} of {steps} steps fall; speedup / P with the most devices {mean:.2f}"
            yield named_case(who.label, text, mean, falls == 0)


def _ends(
    periods: Periods, lines: Sequence[Sequence[Place]], holds: Callable[[float], bool], words: str
) -> Iterator[Case]:
    """Speedup at the first place of each line over that at the last, of those that have a schedule."""
    for who in (*MADPIPES, *BASELINES):
        ratios = []
        for line in lines:
            known = [period_s for place in line if (period_s := periods.period_s(place, who))]
            ratios += [known[-1] / known[0]] if len(known) > 1 else []
        if ratios:
            mean = geometric_mean(ratios)
            text = f"{who.label}, {words}: {mean:.2f} ({len(ratios)} lines)"
            yield Case(text, mean, holds(mean), who.label)
