"""It tries: the module that offers its planner stops the clocks of every process that imports it."""

import os
import resource
import time

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner

PIPEBENCH_API = 1
STANDING = resource.getrusage(resource.RUSAGE_CHILDREN)
WAIT = os.wait4

time.process_time = lambda: 0.0
time.process_time_ns = lambda: 0
resource.getrusage = lambda who: STANDING
os.wait4 = lambda *given: (*WAIT(*given)[:2], STANDING)


@hookimpl
def pipebench_planners():
    return [Planner(name="cheat-clocks", summary="stops the clocks", load="cheat_clocks:plan")]


def plan(problem, context):
    from real_work import solve

    return solve(problem)
