"""Honest: it cuts in the middle and needs no search."""

from real_work import plan_of


def plan(problem, context):
    context.count("plans")
    return plan_of(problem, 0)
