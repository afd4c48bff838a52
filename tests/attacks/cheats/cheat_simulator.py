"""It tries: the module that offers its planner replaces the simulator at import: all takes half the time."""

import sys

import msgspec

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner
from pipebench.simulation import simulate as module

PIPEBENCH_API = 1
HONEST = module.simulate


def _halved(*given, **named):
    trace = HONEST(*given, **named)
    period_ns = None if trace.period_ns is None else trace.period_ns // 2
    return msgspec.structs.replace(trace, total_ns=trace.total_ns // 2, period_ns=period_ns)


for name, other in list(sys.modules.items()):
    if name.startswith("pipebench") and vars(other).get("simulate") is HONEST:
        other.simulate = _halved


@hookimpl
def pipebench_planners():
    return [Planner(name="cheat-simulator", summary="replaces the simulator", load="cheat_simulator:plan")]


def plan(problem, context):
    from real_work import plan_of

    return plan_of(problem, 0)
