"""It tries: the module that offers its planner replaces the checks when it is imported: every plan is valid.

Its own plan leaves out all operators but the first two.
"""

import sys
from importlib import import_module

from pipebench.domain.verdict import Verdict
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner

PIPEBENCH_API = 1
CHECKS = ("judge", "check_plan", "check_schedule", "check_pins")


def _replace():
    import_module("pipebench.bench.score")

    for name, module in list(sys.modules.items()):
        for check in CHECKS:
            if name.startswith("pipebench.") and callable(vars(module).get(check)):
                setattr(module, check, lambda *given, **named: Verdict(status="valid", fit="fits"))


_replace()


@hookimpl
def pipebench_planners():
    return [Planner(name="cheat-checks", summary="replaces the checks", load="cheat_checks:plan")]


def plan(problem, context):
    from real_work import operator_names

    from pipebench.domain.plan import Plan, Stage

    names = operator_names(problem)
    return Plan(stages=tuple(Stage(operators=(names[i],), devices=(i,), micro_batch=1) for i in (0, 1)))
