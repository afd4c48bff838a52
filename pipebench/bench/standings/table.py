"""The standings of a set of rows, regime by regime, with duels of entrants and agreement of the ladder."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from msgspec.structs import replace

from pipebench.bench.machine.environment import search_refusal, suite_notice
from pipebench.bench.standings.cells import EntrantCell, Grid, best_known, best_values_ns, grid, ratio_to_best
from pipebench.bench.standings.records import (
    RUNGS,
    Agreement,
    Duel,
    Entrant,
    ProblemAgreement,
    RegimeStandings,
    Rung,
    Standing,
    Standings,
)
from pipebench.bench.standings.statistics import (
    FEWEST,
    PAR,
    SEARCH_SHIFT_S,
    TRIAL_LIMIT_S,
    holm,
    penalised_mean,
    performance_points,
    shifted_geometric_mean,
    signed_rank_p,
    tau_b,
)
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row

FEWEST_ENTRANTS = 3


def agreements(cells: Grid) -> tuple[Agreement, ...]:
    """Tau-b of each pair of rungs that at least one problem can be asked of, lower rung first.

    A problem counts when at least 3 entrants have both rungs; times are compared in whole ns. The mean over
    problems weighs each the same; a problem in which all entrants are equal on one rung has no tau.
    """
    of_problem: dict[str, list[EntrantCell]] = {}
    for problems in cells.values():
        for problem, cell in problems.items():
            of_problem.setdefault(problem, []).append(cell)
    found = (_agreement(lower, upper, of_problem) for lower, upper in combinations(RUNGS, 2))
    return tuple(agreement for agreement in found if agreement.problems)


def _agreement(lower: Rung, upper: Rung, of_problem: dict[str, list[EntrantCell]]) -> Agreement:
    problems = []
    for problem, cells in of_problem.items():
        both = [cell.rungs_ns for cell in cells if lower in cell.rungs_ns and upper in cell.rungs_ns]
        if len(both) >= FEWEST_ENTRANTS:
            tau = tau_b([rungs[lower] for rungs in both], [rungs[upper] for rungs in both])
            problems.append(ProblemAgreement(problem_id=problem, entrants=len(both), tau=tau))
    known = [problem.tau for problem in problems if problem.tau is not None]
    return Agreement(
        lower=lower,
        upper=upper,
        counted=len(known),
        mean_tau=math.fsum(known) / len(known) if known else None,
        problems=tuple(problems),
    )


TIE = 1e-3
"""Values are deterministic, but they rest on profiles that were measured: a tenth of a percent is well inside
the spread of any of them, and what a reader takes for equal."""


def duels(cells: Grid, tie: float = TIE) -> tuple[Duel, ...]:
    """Each pair of entrants that met on at least one problem, in the order of the grid.

    A value beats another that is larger by more than `tie` of the smaller; a failure loses against a success;
    two failures are no contest. Only problems that both were asked count.
    """
    values = _values_ns(cells)
    found = [
        duel
        for first, second in combinations(cells, 2)
        if (duel := _duel(first, second, values[first], values[second], tie)).contests
    ]
    tested = [duel.p for duel in found if duel.p is not None]
    corrected = iter(holm(tested))
    return tuple(duel if duel.p is None else replace(duel, p_holm=next(corrected)) for duel in found)


Column = np.ndarray[tuple[int], np.dtype[np.float64]]
Values = np.ndarray[Any, np.dtype[np.float64]]


def _values_ns(cells: Grid) -> dict[Entrant, Column]:
    """Of each entrant the value on every problem: infinite where it has no plan, NaN where it was not asked.

    Whole ns up to 2^53, a hundred days, are exact.
    """
    places: dict[str, int] = {}
    for problems in cells.values():
        for problem in problems:
            places.setdefault(problem, len(places))
    found = {}
    for entrant, problems in cells.items():
        column = np.full(len(places), math.nan)
        column[[places[problem] for problem in problems]] = [
            math.inf if cell.value_ns is None else cell.value_ns for cell in problems.values()
        ]
        found[entrant] = column
    return found


def log_ratios(first: Column, second: Column, tie: float) -> Values:
    """log(first / second) of every contest: 0 for a tie, infinite where one failed."""
    met = np.isfinite(first) & ~np.isnan(second) | np.isfinite(second) & ~np.isnan(first)
    return _logs(first[met], second[met], tie)


def _logs(ours: Values, theirs: Values, tie: float) -> Values:
    """The same of any shape; NaN where both failed."""
    with np.errstate(invalid="ignore"):
        logs = np.log(np.maximum(ours, 1)) - np.log(np.maximum(theirs, 1))
        tied = np.abs(ours - theirs) <= tie * np.minimum(ours, theirs)
    return np.where(tied, 0.0, logs)


def _duel(first: Entrant, second: Entrant, ours: Column, theirs: Column, tie: float) -> Duel:
    logs = log_ratios(ours, theirs, tie)
    both = np.isfinite(ours) & np.isfinite(theirs)
    ratios = np.maximum(ours[both], 1) / np.maximum(theirs[both], 1)
    return Duel(
        first=first,
        second=second,
        contests=len(logs),
        wins=int((logs < 0).sum()),
        ties=int((logs == 0).sum()),
        losses=int((logs > 0).sum()),
        both_solved=len(ratios),
        median_ratio=float(np.median(ratios)) if len(ratios) else None,
        p=signed_rank_p(logs.tolist()) if len(logs) >= FEWEST else None,
    )


AT_ONCE = 2**20
"""Contests that are looked at together, which bounds the memory that they take."""
Record = tuple[int, int, int]
"""Wins, ties, losses."""


def records(cells: Grid, tie: float = TIE) -> dict[Entrant, Record]:
    """Of each entrant the wins, ties and losses of all its duels together, without a Duel for each pair."""
    values = _values_ns(cells)
    if not values:
        return {}
    counts = np.zeros((len(values), 3), np.int64)
    for column in np.stack(list(values.values()), axis=1):
        asked = np.flatnonzero(~np.isnan(column))
        step = max(1, AT_ONCE // max(1, len(asked)))
        for first in range(0, len(asked), step):
            ours = asked[first : first + step]
            logs = _logs(column[ours][:, None], column[asked][None, :], tie)
            counts[ours] += np.stack([found.sum(axis=1) for found in (logs < 0, logs == 0, logs > 0)], axis=1)
            counts[ours, 1] -= np.isfinite(column[ours])  # who met itself
    return {entrant: (won, tied, lost) for entrant, (won, tied, lost) in zip(values, counts.tolist(), strict=True)}


REGIMES: tuple[RegimeMode, ...] = ("sync", "async")


def standings(
    rows: Iterable[Row],
    *,
    tie: float = TIE,
    shift_s: float = SEARCH_SHIFT_S,
    timeout_s: float = TRIAL_LIMIT_S,
    in_pairs: bool = True,
) -> Standings:
    """Who did how well across the problems of each regime; skipped rows and yardsticks do not count.

    tie: relative difference up to which two values are equal. timeout_s: the limit of a trial, ten times
    which an unsolved search counts. Values are simulated, else estimated seconds. Search times are left out, with
    the reason, where rows are parallel or from different machines.
    in_pairs: with a duel for each pair of entrants, which thousands have millions of.
    """
    found = [row for row in rows if row.status != "skipped" and not row.yardstick]
    return Standings(
        regimes=tuple(
            _regime(mode, [row for row in found if row.regime == mode], tie, shift_s, timeout_s, in_pairs)
            for mode in REGIMES
            if any(row.regime == mode for row in found)
        )
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """What all entrants of a regime are measured against. searched: whether search times may be compared."""

    best_ns: Mapping[str, int]
    common: frozenset[str]
    searched: bool
    shift_s: float
    unsolved_search_s: float


def _regime(
    mode: RegimeMode, rows: Sequence[Row], tie: float, shift_s: float, timeout_s: float, in_pairs: bool
) -> RegimeStandings:
    cells = grid(rows)
    ran = {
        entrant: {problem: cell for problem, cell in problems.items() if cell.status != "unsupported"}
        for entrant, problems in cells.items()
    }
    refused = search_refusal(rows)
    scale = _Scale(best_values_ns(rows), _common(ran), not refused, shift_s, PAR * timeout_s)
    found = records(ran, tie)
    made = [
        _standing(entrant, problems, len(cells[entrant]), found[entrant], scale)
        for entrant, problems in ran.items()
    ]
    problems = len({row.problem_id for row in rows})
    return RegimeStandings(
        regime=mode,
        problems=problems,
        standings=tuple(sorted(made, key=_rank)),
        duels=duels(ran, tie) if in_pairs else (),
        agreements=agreements(ran),
        best=best_known(rows),
        common=len(scale.common),
        unsolved_search_s=scale.unsolved_search_s,
        search_refused=refused,
        tie=tie,
        shift_s=shift_s,
        notices=tuple(_notices(rows, cells, problems)),
    )


def _common(ran: Grid) -> frozenset[str]:
    """The problems that every entrant with a plan solved."""
    solved = [
        frozenset(problem for problem, cell in problems.items() if cell.value_ns is not None)
        for problems in ran.values()
    ]
    return frozenset.intersection(*filter(None, solved)) if any(solved) else frozenset()


def _standing(
    entrant: Entrant, problems: Mapping[str, EntrantCell], asked: int, record: Record, scale: _Scale
) -> Standing:
    ratios = {
        problem: None if cell.value_ns is None else ratio_to_best(cell.value_ns, scale.best_ns[problem])
        for problem, cell in problems.items()
    }
    solved = {problem: ratio for problem, ratio in ratios.items() if ratio is not None}
    search_s, par2_s = _search(problems.values(), scale)
    wins, ties, losses = record
    return Standing(
        entrant=entrant,
        asked=len(problems),
        solved=len(solved),
        unsupported=asked - len(problems),
        ratio=shifted_geometric_mean(solved.values()),
        common_ratio=shifted_geometric_mean(ratio for problem, ratio in solved.items() if problem in scale.common),
        search_s=search_s,
        par2_s=par2_s,
        wins=wins,
        ties=ties,
        losses=losses,
        performance=performance_points(list(ratios.values())),
    )


def _search(cells: Iterable[EntrantCell], scale: _Scale) -> tuple[float | None, float | None]:
    """Search CPU: shifted mean over what is solved, and PAR2. None where refused, or a solved one has no time."""
    found = list(cells)
    solved = [cell.search_s for cell in found if cell.value_ns is not None]
    if not scale.searched or None in solved:
        return None, None
    times = [cell.search_s if cell.value_ns is not None else None for cell in found]
    return (
        shifted_geometric_mean((time for time in times if time is not None), scale.shift_s),
        penalised_mean(times, scale.unsolved_search_s),
    )


def _rank(standing: Standing) -> tuple[bool, float, float, float, str]:
    """Sort by the share of contests won, a tie counting half; then by the share solved, then by the mean ratio.

    Who has no plan comes last.
    """
    contests = standing.wins + standing.ties + standing.losses
    share = (standing.wins + standing.ties / 2) / contests if contests else 0.0
    solved = standing.solved / standing.asked if standing.asked else 0.0
    return standing.ratio is None, -share, -solved, standing.ratio or math.inf, str(standing.entrant)


def _notices(rows: Sequence[Row], cells: Grid, problems: int) -> Iterable[str]:
    if notice := suite_notice(rows):
        yield notice
    for entrant, asked in cells.items():
        if len(asked) < problems:
            yield f"{entrant} was asked on {len(asked)} of {problems} problems; its means are over those"
    estimated = {
        row.problem_id
        for row in rows
        if row.status == "ok" and row.simulated_s is None and row.estimated_s is not None
    }
    simulated = {row.problem_id for row in rows if row.status == "ok" and row.simulated_s is not None}
    if mixed := len(estimated & simulated):
        yield f"on {mixed} of {problems} problems estimated values stand beside simulated ones"
