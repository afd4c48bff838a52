"""Did a planner creep? What it takes now against the best level that it ever held, summed up night by night.

The anchor is the lowest level that 30 nights in a row held. A night's excess over it, in deviations, less an
allowance, is summed up (Page's cumulative sum, Biometrika 41, 1954); what lies below the anchor takes the sum down
to zero and no further. When the sum reaches its limit, a change is told, and the test starts again from there.
docs/explanation/night-rule.md derives the figures.
"""

import math
from collections import deque
from dataclasses import dataclass

from pipebench.track.rule.noise import Noise, level
from pipebench.track.rule.onset import Onset, find_onset

ANCHOR_NIGHTS = 30
ALLOWANCE, LIMIT = 0.6, 3.9
"""Of a night, and of the sum: deviations."""
MOST_OF_A_NIGHT = 2.0
"""Deviations that one night can count: no two nights together reach the limit."""
LEAST_SPREAD = 0.02
QUIETEST = 1e-3
"""Of a night: less is not believed where a change is dated."""
HIDDEN = 2.0
"""Deviations: no more than this, or LEAST_CHANGE, over a level that was told becomes the next level unseen."""
LEAST_CHANGE = math.log(1.03)
"""Less is never told, however quiet the machine is."""
RECENT = 8
"""Nights, at most, that say how large a change is."""
LEVEL_ERROR = 0.19
"""Standard deviation of the level of 30 nights, in deviations of one."""


class Anchor:
    """The lowest level that 30 nights in a row held. most: it is not higher than this."""

    def __init__(self, most: float = math.inf) -> None:
        self._best = most
        self._last: deque[float] = deque(maxlen=ANCHOR_NIGHTS)
        self.count = 0

    def add(self, value: float) -> None:
        """One more night, as a logarithm."""
        self.count += 1
        self._last.append(value)
        if self.count >= ANCHOR_NIGHTS:
            self._best = min(self._best, level(self._last))

    @property
    def level(self) -> float | None:
        """Where it lies, None before there are 30 nights."""
        return self._best if self.count >= ANCHOR_NIGHTS else None

    @property
    def luck(self) -> float:
        """How far below the true level the lowest of so many nights lies by chance, in deviations of one night.

        The expected extreme of a stationary series (Leadbetter, Lindgren and Rootzén 1983): √(2 ln(n / 30)) times
        the standard deviation of a level.
        """
        return LEVEL_ERROR * math.sqrt(2 * math.log(max(1.0, self.count / ANCHOR_NIGHTS)))


@dataclass(slots=True)
class CumulativeSum:
    """Page's sum. nights: since it was last zero."""

    total: float = 0.0
    nights: int = 0

    def add(self, deviations: float) -> None:
        """One more night, by its deviations from the level."""
        self.total = max(0.0, self.total + min(deviations, MOST_OF_A_NIGHT) - ALLOWANCE)
        self.nights = self.nights + 1 if self.total > 0 else 0


class DriftTest:
    """The test of one segment, night by night.

    noise: to which each night is added after it was added here. limit: of the sum.
    """

    def __init__(self, noise: Noise, limit: float = LIMIT) -> None:
        self._limit = limit
        self._noise = noise
        self._anchor = Anchor()
        self._sum = CumulativeSum()
        self._values: list[float] = []
        self._start = 0

    @property
    def spread(self) -> float:
        """Of one night, one standard error larger than found, resemblance included."""
        return max(LEAST_SPREAD, self._noise.spread_at_most * self._noise.wander)

    @property
    def reference(self) -> float | None:
        """The level that the next night is compared with, None where it is not known yet."""
        held = self._anchor.level
        return None if held is None else held + self._anchor.luck * self.spread

    def add(self, value: float) -> bool:
        """One more night; whether a change is to be told in it."""
        reference = self.reference
        told = reference is not None and self._is_told(value, reference)
        self._values.append(value)
        self._anchor.add(value)
        return told

    def _is_told(self, value: float, reference: float) -> bool:
        self._sum.add((value - reference) / self.spread)
        if self._sum.total < self._limit:
            return False
        last = min(self._sum.nights, RECENT)
        nights = [*self._values[len(self._values) - last + 1 :], value]
        return level(nights) - reference >= LEAST_CHANGE

    def onset(self) -> Onset:
        """When the change began that is told in the last night."""
        spread = max(QUIETEST, self._noise.spread * self._noise.wander)
        return find_onset(self._values[self._start :], spread, self._start)

    def restart(self, since: int, told: float) -> None:
        """A change was told: the test goes on when 30 nights since it show the new level.

        told: that level as it was told, from which nothing but a little may be hidden in those nights.
        """
        self._sum = CumulativeSum()
        self._anchor = Anchor(told + max(LEAST_CHANGE, HIDDEN * self.spread))
        for value in self._values[since:]:
            self._anchor.add(value)
        self._start = since
