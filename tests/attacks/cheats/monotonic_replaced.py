"""It tries: the clock of the deadline runs backwards, so that wall times become negative."""

import time

from real_work import solve

READINGS = iter(range(10**9, 0, -100))


def plan(problem, context):
    time.monotonic = time.perf_counter = lambda: float(next(READINGS))
    return solve(problem)
