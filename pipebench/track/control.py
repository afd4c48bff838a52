"""The A/A pair: one subject measured twice in the same rounds, night after night. Whatever it shows is false."""

import math
import statistics
from collections.abc import Sequence

from pipebench.domain.value import Value
from pipebench.track.night import Measured, Night
from pipebench.track.paired import FLAVOUR
from pipebench.track.pairs import Pairs, compare_pairs

MAYBE = 0.95


class Control(Value, frozen=True, kw_only=True):
    """nights: in which the pair was measured; alarms: in how many of them the two differed, which is never true.

    most: what the true rate is below with 95 % confidence. spread: median size of the difference.
    """

    subject: str = ""
    nights: int = 0
    alarms: int = 0
    spread: float | None = None
    tonight: Pairs | None = None

    @property
    def rate(self) -> float | None:
        """False alarms a night."""
        return self.alarms / self.nights if self.nights else None

    @property
    def most(self) -> float | None:
        """The upper end of the exact 95 % interval (Clopper and Pearson, one-sided)."""
        return _upper(self.alarms, self.nights) if self.nights else None


def control(nights: Sequence[Night]) -> Control:
    """What the A/A pairs of the nights showed, of all subjects together."""
    answers: list[Pairs] = []
    tonight: Pairs | None = None
    subject = ""
    for number, night in enumerate(nights):
        for measured in night.measured:
            if measured.twin is None:
                continue
            answer = compare_pairs([_logs(measured)])[0]
            if answer.answer != "too few pairs":
                answers.append(answer)
            if number == len(nights) - 1:
                tonight, subject = answer, measured.subject.label
    return Control(
        subject=subject,
        nights=len(answers),
        alarms=sum(each.answer != "same" for each in answers),
        spread=statistics.median(abs(each.change) for each in answers) if answers else None,
        tonight=tonight,
    )


def _logs(measured: Measured) -> list[float]:
    """Twin over own. The first round of the subject ran before there was a twin."""
    assert measured.paired is not None
    assert measured.twin is not None
    own, twin = measured.paired.rounds.get(FLAVOUR, ())[1:], measured.twin.rounds.get(FLAVOUR, ())
    return [math.log(b / a) for a, b in zip(own, twin, strict=False)]


def _upper(alarms: int, nights: int) -> float:
    """The rate at which so few alarms in so many nights have a chance of 5 %, by bisection."""
    if alarms >= nights:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        chance = sum(math.comb(nights, k) * rate**k * (1 - rate) ** (nights - k) for k in range(alarms + 1))
        low, high = (rate, high) if chance > 1 - MAYBE else (low, rate)
    return high
