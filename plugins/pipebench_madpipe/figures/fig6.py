"""Figure 6: periods over memory for ResNet-50, the estimate of the first phase and the schedule."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import geometric_mean

from pipebench.artefacts.curves import curve, with_marks
from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender, simulated_s
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_madpipe.figures.grid import (
    BANDWIDTH_GB_S,
    BASELINES,
    CONTENDERS,
    DEVICES,
    ESTIMATED,
    MADPIPES,
    MEMORY_GB,
    PAPER,
    CellGrid,
)
from pipebench_madpipe.figures.periods import (
    LARGER,
    Periods,
    Place,
    every_pair,
    judge_cases,
    pair_cases,
    read_periods,
)

SECTION = "section 5.2, on figure 6"
ROUTINELY = Claim(
    name="routinely 20 % larger",
    statement="In half of the cells or more, PipeDream's period is at least 1.2 times MadPipe's",
    quote="The period achieved by PipeDream is routinely 20% larger than what MadPipe can provide",
    where=SECTION,
)
TWICE = Claim(
    name="up to two or three times",
    statement="In some cell PipeDream's period is at least twice MadPipe's",
    quote="in some cases the solution of PipeDream is up to two or even three times slower",
    where=SECTION,
)
OPTIMISTIC = Claim(
    name="PipeDream's estimate is optimistic",
    statement="PipeDream's schedule takes at least 1.2 times its estimate (geometric mean)",
    quote=(
        "the partitioning produced by PipeDream is very optimistic and expects to achieve a very small period, "
        "but then turns out infeasible, resulting in a very high overhead"
    ),
    where=SECTION,
)
HIGHER = Claim(
    name="MadPipe expects more and gets less",
    statement="MadPipe's estimate is above PipeDream's, its schedule below (geometric means)",
    quote=(
        "the partitioning obtained by the first step of MadPipe has a higher period because it considers more "
        "memory constraints, but it overall results in a more efficient schedule"
    ),
    where=SECTION,
)
NON_INCREASING = Claim(
    name="estimates never rise with memory",
    statement="No estimate is larger with more memory",
    quote="the period of the partitionings (the dashed lines) are non-increasing with M",
    where=SECTION,
)
ERRATIC = Claim(
    name="PipeDream's schedules are the more erratic",
    statement="With more memory PipeDream's period rises more often than MadPipe's",
    quote="This erratic behavior is nevertheless much more visible for PipeDream.",
    where=SECTION,
)
SUBSET = CellGrid(("resnet50",), (2, 4, 8), (4, 6, 8, 10, 12, 16))
PANEL = ("network", "bandwidth_gb_s", "devices")
"""The axes that one panel stands for: memory alone differs in it."""
FULL = CellGrid(("resnet50",), DEVICES, MEMORY_GB, BANDWIDTH_GB_S)


class PeriodsByMemory:
    """hooks.reproduction.Reproduction."""

    claims = (ROUTINELY, TWICE, OPTIMISTIC, HIGHER, NON_INCREASING, ERRATIC)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """ResNet-50, and the user's profiles."""
        return tuple((FULL if full else SUBSET).cells(profiles))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        periods = read_periods(results)
        pairs = every_pair(periods, periods.grid.places())
        return [
            judge_cases(
                ROUTINELY,
                pair_cases(pairs, lambda p: p.larger / len(p.values), lambda p: 2 * p.larger >= len(p.values)),
                f"routinely is taken as half of the cells at {LARGER:g} or more",
            ),
            judge_cases(
                TWICE,
                pair_cases(pairs, lambda p: max(p.values), lambda p: max(p.values) >= 2.0),
                "the largest ratio is 2 or more",
            ),
            judge_cases(OPTIMISTIC, _optimism(periods), f"schedule / estimate is {LARGER:g} or more"),
            judge_cases(
                HIGHER, _expectations(periods), "estimates above 1, schedules below 1, both MadPipe / PipeDream"
            ),
            judge_cases(NON_INCREASING, _rising_estimates(periods), "no step of memory raises an estimate"),
            judge_cases(ERRATIC, _erratic(periods), "more of PipeDream's steps of memory raise its period"),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each network, bandwidth and number of devices; dashed: estimates."""
        periods = read_periods(results)
        panels = tuple(
            Panel(
                title=f"{network}, P = {devices}, {bandwidth:g} GB/s",
                x_label="memory of a device (GB)",
                y_label="period (ms)",
                curves=with_marks(each for who in CONTENDERS for each in _curves(periods, line, who)),
            )
            for (network, bandwidth, devices), line in periods.lines(*PANEL).items()
        )
        title = "MadPipe, figure 6: period of the estimate (dashed) and of the schedule (solid)"
        return Figure(title=title, panels=panels, notes=periods.lost)


def _curves(periods: Periods, line: list[Place], who: Contender) -> Iterator[Curve]:
    places = [place for place in line if periods.grid.row(place, who) is not None]
    if who in ESTIMATED:
        yield curve(
            who,
            places,
            lambda place: place.memory_gb,
            lambda place: _ms(periods.estimate_s(place, who)),
            label=f"{who.label}: estimate",
            kind="estimate",
        )
    yield curve(
        who,
        places,
        lambda place: place.memory_gb,
        lambda place: _ms(periods.period_s(place, who)),
        lambda place: periods.infeasible(place, who),
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _optimism(periods: Periods) -> Iterator[Case]:
    for who in BASELINES:
        ratios, lost = [], 0
        for place in periods.grid.places():
            period_s, estimate_s = periods.period_s(place, who), periods.estimate_s(place, who)
            if period_s is not None and estimate_s is not None:
                ratios.append(period_s / estimate_s)
            lost += periods.infeasible(place, who) and estimate_s is not None
        if ratios:
            mean = geometric_mean(ratios)
            text = f"{mean:.2f} ({len(ratios)} cells; {lost} more cannot be scheduled at all)"
            yield named_case(who.label, text, mean, mean >= LARGER)


def _expectations(periods: Periods) -> Iterator[Case]:
    for slow in BASELINES:
        estimates = []
        for place in periods.grid.places():
            high, low = periods.estimate_s(place, PAPER), periods.estimate_s(place, slow)
            if high is not None and low is not None:
                estimates.append(high / low)
        schedules = periods.grid.ratios(PAPER, slow, simulated_s)
        if estimates and schedules:
            above, below = geometric_mean(estimates), geometric_mean(schedules.values())
            line = f"{PAPER.label} / {slow.label}: estimates {above:.2f}, schedules {below:.2f}"
            yield Case(line, 1 / below, above > 1 > below, slow.label)


def _steps(periods: Periods, seconds: Callable[[Place], float | None]) -> tuple[int, int]:
    """The number of steps to more memory, and the number of these that raise the value."""
    steps = rises = 0
    for line in periods.lines(*PANEL).values():
        known = [value for place in line if (value := seconds(place)) is not None]
        steps += max(0, len(known) - 1)
        rises += sum(after > before * (1 + 1e-9) for before, after in pairwise(known))
    return steps, rises


def _rising_estimates(periods: Periods) -> Iterator[Case]:
    def expected(who: Contender) -> tuple[int, int]:
        return _steps(periods, lambda place: periods.estimate_s(place, who))

    for who in ESTIMATED:
        steps, rises = expected(who)
        if steps:
            yield named_case(who.label, f"{rises} of {steps} steps rise", -rises, rises == 0)


def _erratic(periods: Periods) -> Iterator[Case]:
    def scheduled(who: Contender) -> tuple[int, int]:
        return _steps(periods, lambda place: periods.period_s(place, who))

    for fast in MADPIPES:
        all_steps, own = scheduled(fast)
        for slow in BASELINES:
            steps, rises = scheduled(slow)
            if steps and all_steps:
                line = f"{slow.label}: {rises} of {steps} steps rise, {fast.label}: {own} of {all_steps}"
                more = rises / steps - own / all_steps
                yield Case(line, more, more > 0, f"{slow.label} / {fast.label}")
