"""1F1B and kFkB on a graph of stages."""

from collections.abc import Iterator

from pipebench.algorithms.in_flight import in_flight
from pipebench.costs.messages import stage_edges
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.lanes import lane, micro_batch_counts


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Warm-up forwards, then k backwards and k forwards in turn, then the backwards that are left.

    A stage warms up with as many forwards as it keeps in flight: stage.in_flight samples where the plan says
    so, else by the in-flight rule over data and order edges (algorithms.in_flight, with the option's warm-up).

    Raises UnsupportedProblem when stages share devices; InvalidValue when micro-batches do not divide or the
    edges have a cycle.
    """
    counts = micro_batch_counts(problem, plan, "1f1b")
    kept = in_flight(
        [stage.micro_batch for stage in plan.stages],
        [stage.k for stage in plan.stages],
        stage_edges(problem.profile.graph, plan),
        problem.mini_batch // plan.copies,
        hop=int(context.options.warmup),
    )
    lanes = []
    for position, stage in enumerate(plan.stages):
        warm_up = (stage.in_flight or kept[position]) // stage.micro_batch
        runs = list(_turns(counts[position], min(warm_up, counts[position]), stage.k))
        lanes.append(lane(problem, plan, position, runs))
    return FiniteSchedule(lanes=tuple(lanes))


def _turns(count: int, warm_up: int, k: int) -> Iterator[tuple[str, range]]:
    """Runs of forwards and backwards; never more backwards in a run than micro-batches are in flight."""
    yield FORWARD, range(warm_up)
    forwards, backwards, step = warm_up, 0, min(k, warm_up)
    while forwards < count:
        ahead = min(step, count - forwards)
        yield BACKWARD, range(backwards, backwards + ahead)
        yield FORWARD, range(forwards, forwards + ahead)
        backwards += ahead
        forwards += ahead
    yield BACKWARD, range(backwards, count)
