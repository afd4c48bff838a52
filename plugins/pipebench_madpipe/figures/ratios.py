"""Ratios of periods over many points, and what a claim about them comes to under every reading."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import geometric_mean

from pipebench.domain.artefact import Claim, Finding, Judgement
from pipebench_madpipe.figures.contenders import BASELINES, MADPIPES, Contender
from pipebench_madpipe.figures.points import Point, Points

RELEASED = BASELINES[-1]
WHY_RELEASED = (
    "The released estimate (E2) counts neither gradients nor buffers nor a stage's own micro-batch, so that its "
    "partitions need much longer periods than it expects; the other readings know better"
)
LARGER = 1.2
"""The paper's 20 %."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """period(slow) / period(fast) where both have a schedule; missing: points where only the fast one has."""

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
        counted = f"{self.mean:.2f} ({len(self.values)} cells, {self.larger} of them >= {LARGER:g}"
        return f"{self.name}: {counted}, largest {max(self.values):.2f}; {self.missing} more infeasible)"


def ratios(points: Points, slow: Contender, fast: Contender, among: Iterable[Point]) -> Ratios:
    """Over the points given."""
    values, missing = [], 0
    for point in among:
        high, low = points.period(point, slow.key), points.period(point, fast.key)
        if high is not None and low is not None:
            values.append(high / low)
        elif low is not None and points.infeasible(point, slow.key):
            missing += 1
    return Ratios(slow, fast, tuple(values), missing)


def every_pair(points: Points, among: Iterable[Point]) -> list[Ratios]:
    """PipeDream under each reading against each MadPipe, where they have cells in common."""
    listed = list(among)
    pairs = [ratios(points, slow, fast, listed) for fast in MADPIPES for slow in BASELINES]
    return [pair for pair in pairs if pair.values]


@dataclass(frozen=True, slots=True)
class Case:
    """A claim for one planner or pair of planners. value: the figure that decides."""

    name: str
    measured: str
    value: float
    holds: bool


def cases(
    pairs: Iterable[Ratios], value: Callable[[Ratios], float], holds: Callable[[Ratios], bool]
) -> list[Case]:
    """One case for each pair."""
    return [Case(pair.name, str(pair), value(pair), holds(pair)) for pair in pairs]


def judged(claim: Claim, found: list[Case], rule: str) -> Finding:
    """`holds` or `does not hold` where all cases agree, else `depends`: on the reading and on the MadPipe.

    The finding's value is that of the case least in favour: the first that does not hold, else the smallest.
    rule: what holding asks, in words.
    """
    if not found:
        return Finding(
            claim=claim,
            judgement="claim only",
            reason="no cells with a schedule of those that are compared",
        )
    agreeing, against = [case for case in found if case.holds], [case for case in found if not case.holds]
    judgement: Judgement = "depends" if agreeing and against else "holds" if agreeing else "does not hold"
    reason = rule
    if judgement == "depends":
        reason += f". So for {_names(agreeing)}; not for {_names(against)}"
        if all(RELEASED.label in case.name for case in agreeing):
            reason += f". {WHY_RELEASED}"
    return Finding(
        claim=claim,
        measured=tuple(case.measured for case in found),
        value=min(case.value for case in against or agreeing),
        judgement=judgement,
        reason=reason,
    )


def _names(found: list[Case]) -> str:
    return ", ".join(case.name for case in found)
