"""Periods of the contenders by place on the grid, and their ratios under every reading of the baseline."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from pipebench.artefacts import findings
from pipebench.artefacts.findings import Case
from pipebench.artefacts.result_grid import (
    NO_PLAN,
    SERIES,
    Contender,
    ResultGrid,
    claimed_s,
    result_grid,
    simulated_s,
    troubles,
)
from pipebench.domain.artefact import Claim, Finding, Result
from pipebench_madpipe.figures.grid import BASELINES, MADPIPES, SEQUENTIAL

RELEASED = BASELINES[-1]
WHY_RELEASED = (
    "The released estimate (E2) counts neither gradients nor buffers nor a stage's own micro-batch, so that its "
    "partitions need much longer periods than it expects; the other readings know better"
)
LARGER = 1.2
"""The paper's 20 %."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One problem of the paper's grid."""

    network: str
    devices: int
    memory_gb: float
    bandwidth_gb_s: float


@dataclass(frozen=True, slots=True)
class Periods:
    """The rows of the grid.

    grid: rows by place, without those that failed for reasons of their own (`lost` counts these).
    sequential_s: U(1, L), the time of the whole network on one device, by network.
    """

    grid: ResultGrid[Place]
    sequential_s: Mapping[str, float]
    lost: tuple[str, ...] = ()

    def period_s(self, place: Place, who: Contender) -> float | None:
        """Seconds of the contender's schedule; None where it has none or was not run."""
        return self.grid.value(place, who, simulated_s)

    def estimate_s(self, place: Place, who: Contender) -> float | None:
        """Seconds that the contender's first phase expected, with a schedule or without."""
        row = self.grid.row(place, who)
        return claimed_s(row) if row is not None else None

    def infeasible(self, place: Place, who: Contender) -> bool:
        """Whether the contender ran at this place and found no schedule."""
        return self.grid.lacks(place, who, simulated_s)

    def lines(self, *axes: str) -> dict[tuple[Any, ...], list[Place]]:
        """The places that agree on these axes, ascending.

        The lines come in the order of their values: networks as they were run, numbers ascending.
        """
        turn = {network: turn for turn, network in enumerate(self.grid.values("network"))}
        lines: dict[tuple[Any, ...], list[Place]] = {}
        for place in sorted(self.grid.places()):
            lines.setdefault(tuple(getattr(place, axis) for axis in axes), []).append(place)
        return dict(sorted(lines.items(), key=lambda line: tuple(turn.get(value, value) for value in line[0])))


def read_periods(results: Sequence[Result]) -> Periods:
    """All results of the grid, keyed by network, devices, memory and bandwidth."""
    alone = [each for each in results if each.cell.at[SERIES] == SEQUENTIAL]
    sequential_s = {
        str(each.cell.at["network"]): each.row.simulated_s
        for each in alone
        if each.row.status in ("ok", *NO_PLAN) and each.row.simulated_s is not None
    }
    shared = [each for each in results if each.cell.at[SERIES] != SEQUENTIAL]
    return Periods(result_grid(shared, Place, skip_trouble=True), sequential_s, troubles(results))


@dataclass(frozen=True, slots=True)
class PeriodRatios:
    """period(slow) / period(fast) where both have a schedule.

    missing: places where only the fast one has a schedule.
    """

    slow: Contender
    fast: Contender
    values: tuple[float, ...]
    missing: int

    @property
    def mean(self) -> float:
        """Geometric mean; there must be values."""
        return geometric_mean(self.values)

    @property
    def larger(self) -> int:
        """How many are at least 1.2."""
        return sum(value >= LARGER for value in self.values)

    @property
    def name(self) -> str:
        """Which two are compared."""
        return f"{self.slow.label} / {self.fast.label}"

    def __str__(self) -> str:
        counts = f"{self.mean:.2f} ({len(self.values)} cells, {self.larger} of them >= {LARGER:g}"
        return f"{self.name}: {counts}, largest {max(self.values):.2f}; {self.missing} more infeasible)"


def period_ratios(periods: Periods, slow: Contender, fast: Contender, places: Iterable[Place]) -> PeriodRatios:
    """Over the places given."""
    where = list(places)
    values = periods.grid.ratios(slow, fast, simulated_s, where)
    missing = sum(periods.infeasible(p, slow) and periods.period_s(p, fast) is not None for p in where)
    return PeriodRatios(slow, fast, tuple(values.values()), missing)


def every_pair(periods: Periods, places: Iterable[Place]) -> list[PeriodRatios]:
    """PipeDream under each reading against each MadPipe, where they have cells in common."""
    where = list(places)
    pairs = [period_ratios(periods, slow, fast, where) for fast in MADPIPES for slow in BASELINES]
    return [pair for pair in pairs if pair.values]


def pair_cases(
    pairs: Iterable[PeriodRatios], value: Callable[[PeriodRatios], float], holds: Callable[[PeriodRatios], bool]
) -> list[Case]:
    """One case for each pair."""
    return [Case(str(pair), value(pair), holds(pair), pair.name) for pair in pairs]


def judge_cases(claim: Claim, cases: Iterable[Case], rule: str) -> Finding:
    """A claim's verdict; the claim may depend on the reading of the baseline and on the variant of MadPipe.

    rule: the condition under which the claim holds, in words.
    """
    cases = list(cases)
    agreeing = [case for case in cases if case.holds]
    released_only = bool(agreeing) and all(RELEASED.label in case.name for case in agreeing)
    none = "no cells with a schedule of those that are compared"
    return findings.judge_cases(claim, cases, rule, WHY_RELEASED if released_only else "", no_cases=none)
