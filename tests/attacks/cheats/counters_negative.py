"""It tries: a work counter of minus three."""

from real_work import plan_of


def plan(problem, context):
    context.counters["plans"] = -3
    return plan_of(problem, 0)
