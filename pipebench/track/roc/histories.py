"""Made-up histories: nights of known noise, with a change of known size in a known night."""

import math
import random
from dataclasses import dataclass
from typing import Literal

from pipebench.track.rule.rule import RatioPoint

BEFORE = 60
"""Steady nights before the change."""
STEADY_NIGHTS = 365
"""Of a history without a change."""
STEP_NIGHTS = 30
"""After a step."""
TOLD_BY, LAST = 0.06, 0.12
"""What a drift sums up to in the night by which it should be told, and in the last one."""

CVS = (0.025, 0.06, 0.20)
Shape = Literal["steady", "step", "drift"]


@dataclass(frozen=True, slots=True)
class Planted:
    """What was planted. size: relative, of the step, or of one night of the drift."""

    shape: Shape
    size: float = 0.0

    @property
    def nights(self) -> int:
        """Of a whole history."""
        if self.shape == "steady":
            return STEADY_NIGHTS
        return BEFORE + (STEP_NIGHTS if self.shape == "step" else round(LAST / self.size))

    @property
    def nights_to_tell(self) -> int:
        """From the first night that is off, within which it counts as found."""
        return round(TOLD_BY / self.size) if self.shape == "drift" else STEP_NIGHTS

    def summed(self, number: int) -> float:
        """The relative change in a night; 1 is the first that is off. A drift's nights are added up."""
        if number < 1 or self.shape == "steady":
            return 0.0
        return self.size * (number if self.shape == "drift" else 1)


STEADY = Planted("steady")
CHANGES = (
    *(Planted("step", size) for size in (0.03, 0.05, 0.10, 0.20)),
    *(Planted("drift", size) for size in (0.002, 0.003, 0.005)),
)


def made_history(planted: Planted, cv: float, seed: int, number: int) -> list[RatioPoint]:
    """One history, the same whenever it is asked for. cv: standard deviation over mean of a night's ratio.

    Nights are log-normal and independent. Each has a rerun, at which a rule looks where it asks for one.
    """
    draw = random.Random(f"{seed} {planted.shape} {planted.size} {cv} {number}")
    sigma = math.sqrt(math.log1p(cv**2))
    return [
        RatioPoint(
            *((1 + planted.summed(night - BEFORE + 1)) * math.exp(draw.gauss(0.0, sigma)) for _ in range(2))
        )
        for night in range(planted.nights)
    ]
