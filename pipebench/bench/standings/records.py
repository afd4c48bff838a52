"""What standings are made of; every type is plain data and can be written as JSON."""

from typing import Literal

from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import planner_name
from pipebench.domain.value import Value

Rung = Literal["claimed", "estimated", "simulated", "measured"]
RUNGS: tuple[Rung, ...] = ("claimed", "estimated", "simulated", "measured")
"""The claim ladder: the planner's own model, the suite's closed form, the simulator, real devices."""


class Entrant(Value, frozen=True, kw_only=True):
    """Who is compared: a planner with its options under one scheduler.

    coarsen: the most blocks of operators that it was shown; 0: the operators.
    """

    planner: str
    scheduler: str = ""
    adapted: bool = False
    coarsen: int = 0

    def __hash__(self) -> int:
        """As of equal content; it has no mappings, and a hundred thousand rows are looked up by it."""
        return hash((self.planner, self.scheduler, self.adapted, self.coarsen))

    @property
    def planned_by(self) -> str:
        """The planner as tables name it."""
        return planner_name(self.planner, self.adapted, self.coarsen)

    def __str__(self) -> str:
        return f"{self.planned_by} x {self.scheduler}" if self.scheduler else self.planned_by


class BestKnown(Value, frozen=True, kw_only=True):
    """The fastest plan that any row has for a problem; value_s and entrants are empty when nobody solved it.

    gap: (value - bound) / bound.
    """

    problem_id: str
    profile: str
    cluster: str
    devices: int
    mini_batch: int
    value_s: float | None
    bound_s: float | None
    gap: float | None
    entrants: tuple[Entrant, ...]


class Standing(Value, frozen=True, kw_only=True):
    """One entrant across the problems of a regime that it was asked.

    asked: problems that it ran on; unsupported: those that it does not take, which count nowhere else.
    ratio: geometric mean of value / best known over the problems that it solved. common_ratio: over those that
    every entrant with a plan solved. search_s: shifted geometric mean of search CPU over those that it solved.
    par2_s: mean of search CPU over all that it ran on, an unsolved one counting twice the limit.
    wins, ties, losses: over all opponents and problems. performance: points (tau, share of the asked problems with
    ratio <= tau), steps upwards.
    """

    entrant: Entrant
    asked: int
    solved: int
    unsupported: int
    ratio: float | None
    common_ratio: float | None
    search_s: float | None
    par2_s: float | None
    wins: int
    ties: int
    losses: int
    performance: tuple[tuple[float, float], ...]


class Duel(Value, frozen=True, kw_only=True):
    """Two entrants on the problems that both ran on and at least one solved (contests).

    wins, ties, losses: of `first`. median_ratio: of first / second over the `both_solved` problems, below 1
    where the first is faster. p: exact two-sided signed-rank test, None below 6 contests; p_holm: the same
    corrected for all duels of the regime.
    """

    first: Entrant
    second: Entrant
    contests: int
    wins: int
    ties: int
    losses: int
    both_solved: int
    median_ratio: float | None
    p: float | None = None
    p_holm: float | None = None


class ProblemAgreement(Value, frozen=True, kw_only=True):
    """Kendall's tau-b between two rungs over the entrants of one problem; None: all of one rung are equal."""

    problem_id: str
    entrants: int
    tau: float | None


class Agreement(Value, frozen=True, kw_only=True):
    """Rank agreement of two rungs: mean_tau over the `counted` problems that have a tau."""

    lower: Rung
    upper: Rung
    counted: int
    mean_tau: float | None
    problems: tuple[ProblemAgreement, ...]


class RegimeStandings(Value, frozen=True, kw_only=True):
    """Everything that is said across the problems of one regime.

    common: problems that every entrant with a plan solved. search_refused: why search times are not compared (''
    when they are). unsolved_search_s: what an unsolved problem counts in par2_s. tie: relative difference up to
    which two values are equal. shift_s: of the mean of search times.
    """

    regime: RegimeMode
    problems: int
    standings: tuple[Standing, ...]
    duels: tuple[Duel, ...]
    agreements: tuple[Agreement, ...]
    best: tuple[BestKnown, ...]
    common: int
    unsolved_search_s: float
    search_refused: str
    tie: float
    shift_s: float
    notices: tuple[str, ...] = ()


class Standings(Value, frozen=True, kw_only=True):
    """The standings of each regime; regimes are never compared with one another."""

    regimes: tuple[RegimeStandings, ...]
