"""What a rule finds, how soon, and what it costs in false alarms, at several thresholds."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence

from pipebench.domain.value import Value
from pipebench.track.roc.histories import BEFORE, CHANGES, CVS, STEADY, Planted, Shape, made_history
from pipebench.track.roc.judges import THRESHOLDS, Judge, Tool

Z95 = statistics.NormalDist().inv_cdf(0.975)
BESIDE_STEADY = 120
"""Nights of a steady history that other tools see: they take far longer for each."""


class Found(Value, frozen=True, kw_only=True):
    """One change at one noise, under one rule.

    threshold: see `judges.THRESHOLDS`. told: histories in which it was told in time: a step within 30 nights, a
    drift by the night in which it sums up to 6 %. delay: median nights until it was told, the first that is off
    being 1; late: those within which 95 % were told; None where the histories ended before. summed, summed_late:
    the change in that night.
    """

    tool: Tool
    threshold: float
    cv: float
    shape: Shape
    size: float
    histories: int
    told: int
    delay: int | None = None
    summed: float | None = None
    late: int | None = None
    summed_late: float | None = None


class FalseAlarms(Value, frozen=True, kw_only=True):
    """Histories without a change. low, high: the rate's 95 % interval (Wilson 1927)."""

    tool: Tool
    threshold: float
    cv: float
    nights: int
    alarms: int
    low: float
    high: float


class TradeOff(Value, frozen=True, kw_only=True):
    """All of it. versions: of the other tools."""

    seed: int
    versions: dict[str, str]
    found: tuple[Found, ...]
    false_alarms: tuple[FalseAlarms, ...]


Work = tuple[Judge, Planted, float, int, int]
"""A judge, what is planted, its noise, the seed, and how many histories."""


def measure_trade_off(
    judges: Sequence[tuple[Judge, int]],
    seed: int = 0,
    jobs: int = 1,
    told: Callable[[int, int], None] = lambda _done, _all: None,
) -> TradeOff:
    """Every judge on its number of histories of each kind. told: hears how many kinds are done, of how many.

    Raises PipebenchError where another tool does not run.
    """
    from joblib import Parallel, delayed

    versions: dict[str, str] = {judge.tool: judge.version() for judge, _ in judges if judge.python}
    work: list[Work] = [
        (judge, planted, cv, seed, count)
        for judge, count in judges
        for cv in CVS
        for planted in (STEADY, *CHANGES)
    ]
    results: list[Found | FalseAlarms] = []
    told(0, len(work))
    made = Parallel(n_jobs=jobs, return_as="generator")(delayed(_measured)(*each) for each in work)
    for done, measured in enumerate(made, start=1):
        told(done, len(work))
        results += measured
    found = tuple(each for each in results if isinstance(each, Found))
    alarms = tuple(each for each in results if isinstance(each, FalseAlarms))
    return TradeOff(seed=seed, versions=versions, found=found, false_alarms=alarms)


def _measured(judge: Judge, planted: Planted, cv: float, seed: int, count: int) -> list[Found | FalseAlarms]:
    histories = [made_history(planted, cv, seed, number) for number in range(count)]
    if planted.shape == "steady" and judge.python:
        histories = [history[:BESIDE_STEADY] for history in histories]
    answers = judge.told(histories)
    made: list[Found | FalseAlarms] = []
    for threshold, nights in zip(THRESHOLDS[judge.tool], answers, strict=True):
        if planted.shape == "steady":
            judged = sum(len(history) - judge.first for history in histories)
            made.append(_false_alarms(judge, threshold, cv, judged, sum(map(len, nights))))
        else:
            made.append(_found(judge, threshold, cv, planted, nights))
    return made


def _false_alarms(judge: Judge, threshold: float, cv: float, judged: int, alarms: int) -> FalseAlarms:
    low, high = wilson(alarms, judged)
    return FalseAlarms(
        tool=judge.tool, threshold=threshold, cv=cv, nights=judged, alarms=alarms, low=low, high=high
    )


def _found(judge: Judge, threshold: float, cv: float, planted: Planted, nights: Sequence[Sequence[int]]) -> Found:
    delays = sorted(_delays(nights))
    middle, late = (_quantile(delays, share) for share in (0.5, 0.95))
    return Found(
        tool=judge.tool,
        threshold=threshold,
        cv=cv,
        shape=planted.shape,
        size=planted.size,
        histories=len(nights),
        told=sum(delay <= planted.nights_to_tell for delay in delays),
        delay=middle,
        summed=None if middle is None else planted.summed(middle),
        late=late,
        summed_late=None if late is None else planted.summed(late),
    )


def _quantile(delays: Sequence[float], share: float) -> int | None:
    """The nights within which that share was told, None where it never was. delays: in order."""
    found = delays[math.ceil(share * len(delays)) - 1]
    return round(found) if math.isfinite(found) else None


def _delays(nights: Sequence[Sequence[int]]) -> Iterator[float]:
    """For each history the number of the first night after the change in which it was told; infinite for none."""
    for told in nights:
        yield next((night - BEFORE + 1 for night in told if night >= BEFORE), math.inf)


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a rate, `count` of `of` (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927)."""
    if not of:
        return 0.0, 1.0
    rate, weight = count / of, Z95**2 / of
    middle = rate + weight / 2
    half = Z95 * math.sqrt((rate * (1 - rate) + weight / 4) / of)
    return max(0.0, (middle - half) / (1 + weight)), min(1.0, (middle + half) / (1 + weight))
