"""Do the rungs of the claim ladder rank the planners of a problem alike?"""

import math
from itertools import combinations

from pipebench.bench.standings.cells import Cell, Grid
from pipebench.bench.standings.kendall import tau_b
from pipebench.bench.standings.records import RUNGS, Agreement, ProblemAgreement, Rung

FEWEST_ENTRANTS = 3


def agreements(cells: Grid) -> tuple[Agreement, ...]:
    """Tau-b of each pair of rungs that at least one problem can be asked of, lower rung first.

    A problem counts when at least 3 entrants have both rungs; times are compared in whole ns. The mean over
    problems weighs each the same; a problem in which all entrants are equal on one rung has no tau.
    """
    of_problem: dict[str, list[Cell]] = {}
    for problems in cells.values():
        for problem, cell in problems.items():
            of_problem.setdefault(problem, []).append(cell)
    found = (_agreement(lower, upper, of_problem) for lower, upper in combinations(RUNGS, 2))
    return tuple(agreement for agreement in found if agreement.problems)


def _agreement(lower: Rung, upper: Rung, of_problem: dict[str, list[Cell]]) -> Agreement:
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
