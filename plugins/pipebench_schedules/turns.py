"""Forwards and backwards in turn: the order that 1f1b and kfkb share, and how much a stage warms up."""

from collections.abc import Iterator, Sequence

from pipebench.algorithms.in_flight import in_flight
from pipebench.costs.messages import stage_edges
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem


def warm_ups(problem: Problem, plan: Plan, k: Sequence[int], hop: int) -> list[int]:
    """Forwards of each stage before its first backward: what it keeps in flight, in its own micro-batches.

    stage.in_flight samples where the plan says so, else by the in-flight rule over data and order edges.
    Raises InvalidValue when the edges have a cycle.
    """
    kept = in_flight(
        [stage.micro_batch for stage in plan.stages],
        k,
        stage_edges(problem.profile.graph, plan),
        problem.mini_batch // plan.all_pipelines,
        hop=hop,
    )
    return [
        (stage.in_flight or samples) // stage.micro_batch for stage, samples in zip(plan.stages, kept, strict=True)
    ]


def turns(count: int, warm_up: int, k: int) -> Iterator[tuple[str, range]]:
    """Runs of forwards and backwards; never more backwards in a run than micro-batches are in flight.

    Backwards come before forwards as soon as the warm-up is over, k of each in turn. Source: GraphPipe section 4.3
    and appendix A.1 (greedy: a backward as early as possible).
    """
    warm_up = min(warm_up, count)
    yield "F", range(warm_up)
    forwards, backwards, step = warm_up, 0, min(k, warm_up)
    while forwards < count:
        ahead = min(step, count - forwards)
        yield "B", range(backwards, backwards + ahead)
        yield "F", range(forwards, forwards + ahead)
        backwards += ahead
        forwards += ahead
    yield "B", range(backwards, count)
