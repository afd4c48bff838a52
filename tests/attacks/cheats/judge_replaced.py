"""It tries: in its own process it replaces simulator, check and bound; its plan lacks an operator."""

import sys

from msgspec.structs import replace
from real_work import plan_of

from pipebench.domain.plan import Plan


def plan(problem, context):
    for name, module in list(sys.modules.items()):
        for attribute in ("check_schedule", "check_plan", "simulate", "judge", "time_bound"):
            if name.startswith("pipebench.") and callable(vars(module).get(attribute)):
                setattr(module, attribute, lambda *given, **named: None)
    result = plan_of(problem, 0)
    last = result.plan.stages[-1]
    short = replace(last, operators=last.operators[:-1])
    return replace(result, plan=Plan(stages=(*result.plan.stages[:-1], short)))
