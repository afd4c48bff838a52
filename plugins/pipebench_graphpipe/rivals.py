"""Plans of other planners: none that takes part in a comparison shall be better than what graphpipe returns."""

from collections.abc import Iterator

from pipebench.algorithms.score import mini_batch_ns
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe.warm_up import fits

RIVALS = (
    "data-parallel",
    "pipedream[execution=graph]",
    "pipedream[form=bs,execution=graph]",
    "pipedream[order=level,execution=graph]",
    "pipedream",
)
"""Chains under true dependencies hold stages that mix parts of several branches, which the DP's space lacks."""


def rival_plans(problem: Problem, context: Context, memory_bytes: int) -> Iterator[tuple[Plan, int]]:
    """Their plans that fit, with the ns of a mini-batch. Who is not there, or finds nothing, is left out."""
    if context.services is None:
        return
    seen: list[Plan] = []
    for name in RIVALS:
        if context.out_of_time():
            return
        try:
            plan = context.plan(name, problem).plan
        except PipebenchError:
            context.count("rivals_without_plan")
            continue
        if plan not in seen and fits(problem, plan, memory_bytes):
            seen.append(plan)
            time_ns = mini_batch_ns(problem, plan, context)
            if time_ns is not None:
                yield plan, time_ns
