"""Figure 8: speedup over the whole network on one device, by number of devices."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import geometric_mean

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_madpipe.figures.contenders import BASELINES, CONTENDERS, MADPIPES, Contender
from pipebench_madpipe.figures.grid import BANDWIDTH_GB_S, DEVICES, NETWORKS, SMALL, Grid, sequential_cells
from pipebench_madpipe.figures.points import Point, Points, points_of
from pipebench_madpipe.figures.ratios import Case, cases, every_pair, judged

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
SUBSET = Grid(NETWORKS, (2, 4, 8), (6, 12), paper_on=SMALL, paper_devices=(2, 4))
FASTER = Grid(NETWORKS, (8,), (6, 12), (24,), paper_on=SMALL, paper_devices=())
FULL = Grid(NETWORKS, DEVICES, (4, 6, 8, 12, 16), BANDWIDTH_GB_S)


class Fig8:
    """hooks.reproduction.Reproduction."""

    claims = (GOOD, BETTER, WORSE, BANDWIDTH)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """The grid, 24 GB/s with 8 devices only in the subset, and each network on one device."""
        grids = (FULL,) if full else (SUBSET, FASTER)
        on_one = sequential_cells(NETWORKS, profiles)
        return (*on_one, *(cell for grid in grids for cell in grid.cells(profiles)))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        points = points_of(results)
        most = max((p.devices for p in points.outcomes), default=0)
        pairs = every_pair(points, [p for p in points.outcomes if p.devices == most])
        return [
            judged(GOOD, _scaling(points), "no step to more devices lowers the speedup"),
            judged(
                BETTER, cases(pairs, lambda p: p.mean, lambda p: p.mean > 1), f"at P = {most}, period over period"
            ),
            judged(
                WORSE,
                _memory(points),
                "speedup with the least memory / with the most is below 1, the rest being equal",
            ),
            judged(BANDWIDTH, _bandwidth(points), f"period at 12 GB/s / at 24 GB/s is below {DRAMATIC:g}"),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each network, memory and bandwidth: speedup by number of devices."""
        points = points_of(results)
        panels = []
        for network, bandwidth, memory in points.places("network", "bandwidth_gb_s", "memory_gb"):
            along = points.along(network=network, bandwidth_gb_s=bandwidth, memory_gb=memory)
            if network in points.sequential and len({p.devices for p in along}) > 1:
                panels.append(
                    Panel(
                        title=f"{network}, {memory:g} GB, {bandwidth:g} GB/s",
                        x_label="devices",
                        y_label="speedup over one device",
                        curves=tuple(_curve(points, along, each) for each in _present(points, along)),
                    )
                )
        title = "MadPipe, figure 8: speedup over sequential execution, U(1, L) / period"
        return Figure(title=title, panels=tuple(panels), notes=points.lost)


def speedup(points: Points, point: Point, key: str) -> float | None:
    """U(1, L) / period; None where there is no schedule or U(1, L) was not run."""
    period, whole = points.period(point, key), points.sequential.get(point.network)
    return whole / period if period and whole else None


def _present(points: Points, along: list[Point]) -> list[Contender]:
    return [each for each in CONTENDERS if any(each.key in points.outcomes[p] for p in along)]


def _curve(points: Points, along: list[Point], contender: Contender) -> Curve:
    found = [(float(p.devices), s) for p in along if (s := speedup(points, p, contender.key)) is not None]
    missing = tuple(float(p.devices) for p in along if points.infeasible(p, contender.key))
    return Curve(label=contender.label, colour=contender.colour, points=tuple(found), infeasible=missing)


def _scaling(points: Points) -> list[Case]:
    found = []
    for contender in MADPIPES:
        steps = falls = 0
        efficiency: list[float] = []
        for network, memory, bandwidth in points.places("network", "memory_gb", "bandwidth_gb_s"):
            if memory < LARGE_GB:
                continue
            along = points.along(network=network, memory_gb=memory, bandwidth_gb_s=bandwidth)
            known = [(p.devices, s) for p in along if (s := speedup(points, p, contender.key)) is not None]
            steps += max(0, len(known) - 1)
            falls += sum(after < before * (1 - 1e-9) for (_, before), (_, after) in pairwise(known))
            efficiency += [known[-1][1] / known[-1][0]] if known else []
        if steps:
            mean = geometric_mean(efficiency)
            text = (
                f"{contender.label}: {falls} of {steps} steps fall; speedup / P with the most devices {mean:.2f}"
            )
            found.append(Case(contender.label, text, mean, falls == 0))
    return found


def _memory(points: Points) -> list[Case]:
    lines = [
        points.along(network=network, devices=devices, bandwidth_gb_s=bandwidth)
        for network, devices, bandwidth in points.places("network", "devices", "bandwidth_gb_s")
    ]
    return _ends(points, lines, lambda ratio: ratio < 1, "least memory / most")


def _bandwidth(points: Points) -> list[Case]:
    lines = [
        points.along(network=network, devices=devices, memory_gb=memory)[::-1]
        for network, devices, memory in points.places("network", "devices", "memory_gb")
    ]
    return _ends(points, lines, lambda ratio: ratio < DRAMATIC, "highest bandwidth / lowest")


def _ends(
    points: Points, lines: Sequence[Sequence[Point]], holds: Callable[[float], bool], words: str
) -> list[Case]:
    """Speedup at the first point of each line over that at the last, of those that have a schedule."""
    found = []
    for contender in (*MADPIPES, *BASELINES):
        values = []
        for along in lines:
            known = [period for p in along if (period := points.period(p, contender.key))]
            values += [known[-1] / known[0]] if len(known) > 1 else []
        if values:
            mean = geometric_mean(values)
            text = f"{contender.label}, {words}: {mean:.2f} ({len(values)} lines)"
            found.append(Case(contender.label, text, mean, holds(mean)))
    return found
