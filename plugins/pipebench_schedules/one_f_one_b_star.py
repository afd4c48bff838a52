"""The scheduler `1f1b*`: MadPipe section 4.1."""

from pipebench.algorithms.chains.one_f_one_b_star import one_f_one_b_star
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context


def schedule(problem: Problem, plan: Plan, context: Context) -> PeriodicSchedule:
    """The 1F1B* pattern of shortest period whose memory fits; replicas work as one stage.

    Raises UnsupportedProblem for the sync regime and for stages that are no chain, InfeasibleProblem for a
    stage that does not fit with one micro-batch in flight.
    """
    found = one_f_one_b_star(CostModel(problem), plan)
    context.count("operations", len(found.kinds) + len(found.transfer_kinds))
    return found
