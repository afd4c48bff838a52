"""1F1B on a graph of stages."""

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.lanes import lane, micro_batch_counts
from pipebench_schedules.turns import turns, warm_ups


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Warm-up forwards, then k backwards and k forwards in turn, then the backwards that are left.

    A stage warms up with as many forwards as it keeps in flight: stage.in_flight samples where the plan says
    so, else by the in-flight rule over data and order edges (algorithms.in_flight, with the option's warm-up).

    Raises UnsupportedProblem when stages share devices; InvalidValue when micro-batches do not divide or the
    edges have a cycle.
    """
    counts = micro_batch_counts(problem, plan, "1f1b")
    warm = warm_ups(problem, plan, [stage.k for stage in plan.stages], int(context.options.warmup))
    return FiniteSchedule(
        lanes=tuple(
            lane(problem, plan, position, list(turns(counts[position], warm[position], stage.k)))
            for position, stage in enumerate(plan.stages)
        )
    )
