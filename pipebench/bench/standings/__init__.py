"""Across problems: best known, means that keep failures, duels, performance profiles and rank agreement."""

from pipebench.bench.standings.cells import Relative, best_known, best_rows, fastest_rows, relative
from pipebench.bench.standings.records import (
    Agreement,
    BestKnown,
    Duel,
    Entrant,
    ProblemAgreement,
    RegimeStandings,
    Standing,
    Standings,
)
from pipebench.bench.standings.table import standings

__all__ = [
    "Agreement",
    "BestKnown",
    "Duel",
    "Entrant",
    "ProblemAgreement",
    "RegimeStandings",
    "Relative",
    "Standing",
    "Standings",
    "best_known",
    "best_rows",
    "fastest_rows",
    "relative",
    "standings",
]
