"""The standings of a set of rows, regime by regime."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipebench.bench.standings.agreement import agreements
from pipebench.bench.standings.best_known import best_known, best_values_ns, ratio_to_best
from pipebench.bench.standings.cells import Cell, Grid, grid
from pipebench.bench.standings.duels import TIE, duels
from pipebench.bench.standings.machine import search_refusal, suite_notice
from pipebench.bench.standings.means import (
    PENALTY,
    SEARCH_SHIFT_S,
    TRIAL_LIMIT_S,
    penalised,
    shifted_geometric_mean,
)
from pipebench.bench.standings.performance import performance_points
from pipebench.bench.standings.records import Duel, Entrant, RegimeStandings, Standing, Standings
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row

REGIMES: tuple[RegimeMode, ...] = ("sync", "async")


def standings(
    rows: Iterable[Row],
    *,
    tie: float = TIE,
    shift_s: float = SEARCH_SHIFT_S,
    timeout_s: float = TRIAL_LIMIT_S,
) -> Standings:
    """Who did how well across the problems of each regime; `skipped` rows do not count.

    tie: relative difference up to which two values are equal. timeout_s: the limit of a trial, ten times
    which an unsolved search counts. Values are simulated, else estimated seconds. Search times are left out, with
    the reason, where rows are parallel or from different machines.
    """
    found = [row for row in rows if row.status != "skipped"]
    return Standings(
        regimes=tuple(
            _regime(mode, [row for row in found if row.regime == mode], tie, shift_s, timeout_s)
            for mode in REGIMES
            if any(row.regime == mode for row in found)
        )
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """What all entrants of a regime are measured against. searched: whether search times may be compared."""

    best_ns: Mapping[str, int]
    searched: bool
    shift_s: float
    penalty_search_s: float


def _regime(
    mode: RegimeMode, rows: Sequence[Row], tie: float, shift_s: float, timeout_s: float
) -> RegimeStandings:
    cells = grid(rows)
    refused = search_refusal(rows)
    scale = _Scale(best_values_ns(rows), not refused, shift_s, PENALTY * timeout_s)
    met = duels(cells, tie)
    made = [_standing(entrant, problems, met, scale) for entrant, problems in cells.items()]
    problems = len({row.problem_id for row in rows})
    return RegimeStandings(
        regime=mode,
        problems=problems,
        standings=tuple(sorted(made, key=_rank)),
        duels=met,
        agreements=agreements(cells),
        best=best_known(rows),
        penalty_ratio=PENALTY,
        penalty_search_s=scale.penalty_search_s,
        search_refused=refused,
        tie=tie,
        shift_s=shift_s,
        notices=tuple(_notices(rows, cells, problems)),
    )


def _standing(entrant: Entrant, problems: Mapping[str, Cell], met: Iterable[Duel], scale: _Scale) -> Standing:
    ratios = [
        None if cell.value_ns is None else ratio_to_best(cell.value_ns, scale.best_ns[problem])
        for problem, cell in problems.items()
    ]
    search, search_solved = _search(problems.values(), scale)
    wins, ties, losses = _record(entrant, met)
    return Standing(
        entrant=entrant,
        asked=len(problems),
        solved=sum(ratio is not None for ratio in ratios),
        unsupported=sum(cell.status == "unsupported" for cell in problems.values()),
        ratio=shifted_geometric_mean(penalised(ratios, PENALTY)),
        ratio_solved=shifted_geometric_mean(ratio for ratio in ratios if ratio is not None),
        search_s=search,
        search_solved_s=search_solved,
        wins=wins,
        ties=ties,
        losses=losses,
        performance=performance_points(ratios),
    )


def _search(cells: Iterable[Cell], scale: _Scale) -> tuple[float | None, float | None]:
    """Means of search CPU with and without failures; None where refused or a solved problem has no search time."""
    found = list(cells)
    solved = [cell.search_s for cell in found if cell.value_ns is not None]
    if not scale.searched or None in solved:
        return None, None
    times = [cell.search_s if cell.value_ns is not None else None for cell in found]
    return (
        shifted_geometric_mean(penalised(times, scale.penalty_search_s), scale.shift_s),
        shifted_geometric_mean((time for time in times if time is not None), scale.shift_s),
    )


def _record(entrant: Entrant, met: Iterable[Duel]) -> tuple[int, int, int]:
    wins = ties = losses = 0
    for duel in met:
        if entrant == duel.first:
            wins, ties, losses = wins + duel.wins, ties + duel.ties, losses + duel.losses
        elif entrant == duel.second:
            wins, ties, losses = wins + duel.losses, ties + duel.ties, losses + duel.wins
    return wins, ties, losses


def _rank(standing: Standing) -> tuple[bool, float, str]:
    """Sort by mean ratio to the best known. Planners without trials were dropped before."""
    assert standing.ratio is not None
    return standing.solved == 0, standing.ratio, str(standing.entrant)


def _notices(rows: Sequence[Row], cells: Grid, problems: int) -> Iterable[str]:
    if notice := suite_notice(rows):
        yield notice
    for entrant, asked in cells.items():
        if len(asked) < problems:
            yield f"{entrant} ran on {len(asked)} of {problems} problems; its means are over those"
    estimated = {
        row.problem_id
        for row in rows
        if row.status == "ok" and row.simulated_s is None and row.estimated_s is not None
    }
    simulated = {row.problem_id for row in rows if row.status == "ok" and row.simulated_s is not None}
    if mixed := len(estimated & simulated):
        yield f"on {mixed} of {problems} problems estimated values stand beside simulated ones"
