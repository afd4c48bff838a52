"""Performance profiles: on how many problems of a regime an entrant is within a factor of the best (E. Dolan and
J. Moré, "Benchmarking optimization software with performance profiles", Mathematical Programming 91, 2002).
"""

from dataclasses import dataclass

from pipebench.bench.standings.records import Entrant, RegimeStandings

FEWEST_PROBLEMS = 6
"""With fewer a curve has so few steps that it says less than the table of each problem."""


@dataclass(frozen=True, slots=True)
class PerformanceCurve:
    """steps: (tau, problems on which time / best <= tau), upwards in both. A problem without a plan is in none."""

    entrant: Entrant
    steps: tuple[tuple[float, int], ...]

    @property
    def best(self) -> int:
        """Problems on which nobody is faster."""
        return self.steps[0][1] if self.steps and self.steps[0][0] <= 1 else 0

    @property
    def solved(self) -> int:
        """Problems with a plan."""
        return self.steps[-1][1] if self.steps else 0


def performance_curves(regime: RegimeStandings) -> tuple[PerformanceCurve, ...]:
    """One curve for each entrant, in the order of the standings. All count the problems of the regime."""
    return tuple(
        PerformanceCurve(each.entrant, tuple((tau, round(share * each.asked)) for tau, share in each.performance))
        for each in regime.standings
    )
