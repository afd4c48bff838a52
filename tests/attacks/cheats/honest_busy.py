"""Honest: it does the work of this folder in plain sight."""

from real_work import solve


def plan(problem, context):
    return solve(problem)
