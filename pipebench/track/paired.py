"""From the samples of searches to paired ratios."""

import math
import statistics
from collections.abc import Mapping, Sequence

from pipebench.bench.searches.request import Sample
from pipebench.track.fingerprint import calibration_code
from pipebench.track.night import Measured, Paired
from pipebench.track.robust import half_width
from pipebench.track.rule import Point

FLAVOUR = "interpreter"
"""The calibration whose ratio is judged; the others are kept."""
PAIRS, FEWEST_ROUNDS, MOST_ROUNDS = 3, 5, 15
"""Pairs in one process; processes of a night. A process is as fast as its memory lies: they count, not pairs."""
CONTROL_ROUNDS = 10
"""Of the A/A pair, so that its pairs are enough for an interval (track.pairs)."""
PRECISE = 0.01
OFF_CPU = 3.0
"""A search with more wall than this times its CPU time was waiting: its pair is not looked at."""


class Gathered:
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
        """Whether the median is known well enough."""
        return self.count >= self.fewest and relative_half_width(self.rounds) < PRECISE

    @property
    def done(self) -> bool:
        """Whether another process would tell nothing more, or there have been enough."""
        return self.processes >= MOST_ROUNDS or self.precise

    def paired(self) -> Paired | None:
        """What goes into the history, None where nothing was timed; without rounds where no pair was of use."""
        if not self.processes:
            return None
        rounds = {flavour: tuple(map(_short, ratios)) for flavour, ratios in self.rounds.items()}
        known = self.count >= MOST_ROUNDS or self.precise
        return Paired(rounds=rounds, calibration=calibration_code(), discarded=self.discarded, imprecise=not known)


def _short(ratio: float) -> float:
    """Six digits: a history is kept for years, and no ratio is known better."""
    return float(f"{ratio:.6g}")


def relative_half_width(rounds: Mapping[str, Sequence[float]]) -> float:
    """Half of the interval of the median of the judged flavour, as a share of it."""
    return half_width([math.log(ratio) for ratio in rounds.get(FLAVOUR, ())])


def ratio_of(paired: Paired | None) -> float | None:
    """The figure of a night."""
    ratios = paired.rounds.get(FLAVOUR, ()) if paired else ()
    return statistics.median(ratios) if ratios else None


def point_of(measured: Measured) -> Point | None:
    """The night as the rule sees it."""
    ratio = ratio_of(measured.paired)
    return None if ratio is None else Point(ratio, ratio_of(measured.again))
