"""Paired ratios: from samples of searches to ratios to the calibration, and the A/A pair that controls them."""

import math
import statistics
from collections.abc import Sequence

from pipebench.bench.searches.request import Sample
from pipebench.domain.value import Value
from pipebench.track.nights.conditions import calibration_code
from pipebench.track.nights.night import Measured, Night, PairedRatios, SubjectNight, six_digits
from pipebench.track.rule.rule import RatioPoint
from pipebench.track.rule.statistics import Pairs, compare_pairs, half_width

FLAVOUR = "interpreter"
"""The calibration whose ratio is judged; the others are kept. A benchmark has one, of its own choice."""
PAIRS, FEWEST_ROUNDS, MOST_ROUNDS = 3, 5, 15
"""Pairs in one process; processes of a night. A process is as fast as its memory lies: they count, not pairs."""
CONTROL_ROUNDS = 10
"""Of the A/A pair, so that its pairs are enough for an interval (track.rule)."""
PRECISE = 0.01
OFF_CPU = 3.0
"""A search with more wall than this times its CPU time was waiting: its pair is not looked at."""


class SubjectRounds:
    """The rounds of one subject, while they are measured.

    processes: how many timed warm searches, whatever became of their pairs; refused: those beside other trials.
    """

    def __init__(self, fewest: int = FEWEST_ROUNDS) -> None:
        self.fewest = fewest
        self.rounds: dict[str, list[float]] = {}
        self.discarded = 0
        self.processes = self.refused = 0

    def add(self, samples: Sequence[Sample], alone: bool = True) -> None:
        """One process. alone: no other trial ran at the same time."""
        self.processes += bool(samples)
        if not alone:
            self.refused += bool(samples)
            return
        kept = [sample for sample in samples if sample.wall_s <= OFF_CPU * sample.cpu_s]
        self.discarded += len(samples) - len(kept)
        flavours = list(samples[0].calibration_cpu_s) if samples else []
        for flavour in flavours:
            ratios = [
                sample.cpu_s / beside for sample in kept if (beside := sample.calibration_cpu_s[flavour]) > 0
            ]
            ratios = [ratio for ratio in ratios if ratio > 0]
            if ratios:
                self.rounds.setdefault(flavour, []).append(statistics.median(ratios))

    @property
    def count(self) -> int:
        """Processes that gave a ratio."""
        return len(self.rounds.get(FLAVOUR, ()))

    @property
    def precise(self) -> bool:
        """Whether the median is known well enough: half of its interval, as a share of it."""
        logs = [math.log(ratio) for ratio in self.rounds.get(FLAVOUR, ())]
        return self.count >= self.fewest and half_width(logs) < PRECISE

    @property
    def is_complete(self) -> bool:
        """Whether another process would tell nothing more, or there have been enough."""
        return self.processes >= MOST_ROUNDS or self.precise

    def paired_ratios(self) -> PairedRatios | None:
        """What goes into the history, None where nothing was timed; without rounds where no pair was of use."""
        if not self.processes:
            return None
        rounds = {flavour: tuple(map(six_digits, ratios)) for flavour, ratios in self.rounds.items()}
        known = self.count >= MOST_ROUNDS or self.precise
        return PairedRatios(
            rounds=rounds, calibration=calibration_code(), discarded=self.discarded, imprecise=not known
        )


def ratio_of(paired: PairedRatios | None) -> float | None:
    """The figure of a night."""
    ratios = judged_ratios(paired)
    return statistics.median(ratios) if ratios else None


def judged_ratios(paired: PairedRatios | None) -> tuple[float, ...]:
    """The ratio of each process."""
    if paired is None or not paired.rounds:
        return ()
    return paired.rounds.get(FLAVOUR) or next(iter(paired.rounds.values()))


def point_of(measured: Measured) -> RatioPoint | None:
    """The night as the rule sees it."""
    ratio = ratio_of(measured.paired)
    return None if ratio is None else RatioPoint(ratio, ratio_of(measured.again))


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


def _logs(measured: SubjectNight) -> list[float]:
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
