"""kFkB: GraphPipe's micro-batch scheduler."""

from pipebench.check.deadlock import deadlock, waits
from pipebench.check.precedence import waiting_stages
from pipebench.check.tasks import finite_tasks
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.lanes import lane, micro_batch_counts
from pipebench_schedules.turns import turns, warm_ups


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Warm-up, then k backwards and k forwards in turn, each stage at its own micro-batch size and k.

    k: that of the stages, or the option's where it is not 0. What a stage keeps in flight is stage.in_flight
    where the plan says so, else by the in-flight rule with the option's warm-up (GraphPipe section 4.3, figure 5;
    the table of appendix A.1 is not public, the rule is reconstructed: algorithms.in_flight).

    Raises UnsupportedProblem when stages share devices; InvalidValue when micro-batches do not divide, the edges
    have a cycle, or what stages keep in flight lets none of them go on: the message names the cycle of waits.
    """
    counts = micro_batch_counts(problem, plan, "kfkb")
    k = [context.options.k or stage.k for stage in plan.stages]
    warm = warm_ups(problem, plan, k, int(context.options.warmup))
    made = FiniteSchedule(
        lanes=tuple(
            lane(problem, plan, position, list(turns(counts[position], warm[position], k[position])))
            for position in range(len(plan.stages))
        )
    )
    tasks = finite_tasks(problem, plan, made)
    standstill = deadlock(tasks, waits(plan, tasks, waiting_stages(CostModel(problem), plan)))
    if standstill is not None:
        raise InvalidValue(
            f"kfkb: {standstill.message}", "raise in_flight of the stage that waits, or leave it 0 for the rule"
        )
    context.count("tasks", sum(len(each.kinds) for each in made.lanes))
    return made
