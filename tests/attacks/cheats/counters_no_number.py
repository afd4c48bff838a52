"""It tries: a work counter that is no number."""

from real_work import plan_of


def plan(problem, context):
    context.counters["plans"] = float("nan")
    return plan_of(problem, 0)
