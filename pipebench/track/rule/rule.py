"""When is a planner slower than it was? The rule for paired CPU ratios.

Ratios are compared on their logarithm with the last 30 nights of the same segment, by the median and the median
absolute deviation of that window. A night is an alarm when it lies more than 3 deviations and 10 % off, and a
rerun in new processes does too; or when it is the third in a row that lies more than 2 deviations and 5 % off, on
the same side. Nights before an alarm are moved to the new level and stay in the window, so that a change of speed
is told once and the baseline neither freezes nor starts anew. Missing nights are skipped when three in a row
are counted, and the report names them.

What grows too slowly for that is told by the test of track/rule/drift.py, which stands beside: what one tells, the
other starts from.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pipebench.track.rule.drift import LIMIT, RECENT, DriftTest
from pipebench.track.rule.noise import Noise
from pipebench.track.rule.onset import Onset
from pipebench.track.rule.statistics import spread

WINDOW = 30
RUNNING = 3
RUN_DEVIATIONS, RUN_CHANGE = 2.0, math.log(1.05)
ONCE_DEVIATIONS, ONCE_CHANGE = 3.0, math.log(1.10)
LEAST_SPREAD = 1e-4
DOUBT = 1.2
"""The deviation of 30 values by their median absolute deviation has a standard error of about a fifth: it is taken
one standard error larger, because what is judged by it is judged every night. Nor is it taken smaller than that of
the last blocks of nights (track/rule/noise.py).
"""
LEVEL_NIGHTS = 15
"""So many nights after a change say where the new level is."""

State = Literal["not enough history", "steady", "suspicious", "slower", "faster", "slower night by night"]


@dataclass(frozen=True, slots=True)
class RatioPoint:
    """The ratio of one night, and that of its confirming rerun."""

    ratio: float
    again: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One night under the rule.

    known: nights in its window. change: relative to the window's median; deviations: of the window. since:
    position of the night in which a change that is told here began. `suspicious`: one night far off that was not
    confirmed, or a run that is not long enough yet. before: logarithm of the level that the night is compared
    with. A change that the test for drifts tells has an onset; its change is that of the whole level.
    """

    state: State
    known: int
    change: float = 0.0
    deviations: float = 0.0
    since: int | None = None
    onset: Onset | None = None
    before: float = 0.0

    @property
    def alarm(self) -> bool:
        """Whether a change of speed is told in this night."""
        return self.since is not None

    @property
    def level(self) -> float:
        """Logarithm of where the night lies, by a fit where there is one."""
        return self.before + math.log1p(self.change)


def readings(points: Sequence[RatioPoint], caution: float = 1.0) -> list[Reading]:
    """The rule for each night of one segment, in order; each is judged by what was known that night.

    caution: by which all limits in deviations are multiplied.
    """
    found: list[Reading] = []
    logs = [math.log(point.ratio) for point in points]
    levels, noise = _Levels(logs), Noise()
    drift = DriftTest(noise, LIMIT * caution)
    run = 0
    for position, point in enumerate(points):
        window = levels.window(position)
        reference = drift.reference
        grown = drift.add(logs[position])
        floor = max(LEAST_SPREAD, noise.spread)
        noise.add(logs[position])
        if len(window) < WINDOW:
            found.append(Reading("not enough history", len(window)))
            continue
        middle, sigma = statistics.median(window), max(DOUBT * spread(window), floor)
        off = logs[position] - middle
        limit = caution * sigma
        run = _run(run, off, limit)
        confirmed = point.again is not None and _far(math.log(point.again) - middle, limit, off)
        if abs(run) >= RUNNING or (_far(off, limit, off) and confirmed):
            since = position - (RUNNING - 1 if abs(run) >= RUNNING else 0)
            levels.add_change(since, position, middle)
            if off > 0:
                drift.restart(since, statistics.fmean(logs[since : position + 1]))
            state: State = "slower" if off > 0 else "faster"
            found.append(Reading(state, len(window), math.expm1(off), off / sigma, since, before=middle))
            run = 0
        elif grown and reference is not None:
            onset = drift.onset()
            levels.add_change(position - RECENT + 1, position, middle)
            drift.restart(position + 1, onset.level)
            found.append(_grown_reading(len(window), onset, reference, sigma))
            run = 0
        else:
            waiting = run != 0 or _far(off, limit, off)
            found.append(
                Reading(
                    "suspicious" if waiting else "steady", len(window), math.expm1(off), off / sigma, before=middle
                )
            )
    return found


def needs_rerun(points: Sequence[RatioPoint]) -> bool:
    """Whether the last night is far enough off to be measured again at once."""
    last = readings(points)[-1]
    off = math.log1p(last.change)
    return last.known >= WINDOW and abs(last.deviations) > ONCE_DEVIATIONS and abs(off) > ONCE_CHANGE


class _Levels:
    """The logarithms as they would be had every change that was told been there from the start."""

    def __init__(self, logs: Sequence[float]) -> None:
        self._logs = logs
        self._changes: list[tuple[int, int, float]] = []

    def add_change(self, since: int, told: int, before: float) -> None:
        """The level was `before` until the night `since`; that was told in the night `told`."""
        self._changes.append((since, told, before))

    def window(self, position: int) -> list[float]:
        """The last nights before a position, at the level that holds there."""
        first = max(0, position - WINDOW)
        moved = list(self._logs[first:position])
        nexts = [*(since for since, _, _ in self._changes[1:]), position]
        for (since, told, before), following in zip(self._changes, nexts, strict=False):
            end = min(position, max(told + 1, since + LEVEL_NIGHTS))
            if following > since:  # nights of the next level say nothing of this one
                end = min(end, following)
            step = statistics.median(self._logs[since:end]) - before
            for place in range(first, min(since, position)):
                moved[place - first] += step
        return moved


def _run(run: int, off: float, sigma: float) -> int:
    """The length of the run of nights off on one side, negative for faster ones."""
    if abs(off) <= max(RUN_DEVIATIONS * sigma, RUN_CHANGE):
        return 0
    side = 1 if off > 0 else -1
    return run + side if run * side >= 0 else side


def _far(off: float, sigma: float, like: float) -> bool:
    """Far enough off for one night, on the same side as `like`."""
    return abs(off) > max(ONCE_DEVIATIONS * sigma, ONCE_CHANGE) and off * like > 0


def _grown_reading(known: int, onset: Onset, reference: float, sigma: float) -> Reading:
    state: State = "slower night by night" if onset.shape == "drift" else "slower"
    off = onset.level - reference
    return Reading(state, known, math.expm1(off), off / sigma, onset.began, onset, reference)
