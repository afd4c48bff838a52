"""GPipe: all forwards of the mini-batch, then all backwards."""

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.lanes import lane, micro_batch_counts


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Forwards in order, backwards in the reverse order (GPipe, section 2.3 and Figure 2c), on any stage graph.

    Raises UnsupportedProblem when stages share devices, InvalidValue when micro-batches do not divide.
    """
    del context
    counts = micro_batch_counts(problem, plan, "gpipe")
    return FiniteSchedule(
        lanes=tuple(
            lane(problem, plan, position, [(FORWARD, range(count)), (BACKWARD, range(count - 1, -1, -1))])
            for position, count in enumerate(counts)
        )
    )
