"""Is a plan valid, before anybody says in which order its tasks run?"""

from collections.abc import Callable

from pipebench.check.acyclicity import cyclic_stages
from pipebench.check.choices import wrong_choice, wrong_sharding
from pipebench.check.convexity import leaves_and_returns
from pipebench.check.coverage import uncovered, unlike_mirror
from pipebench.check.devices import wrong_placement
from pipebench.check.routing import relayed_backwards
from pipebench.check.sizes import wrong_size
from pipebench.check.unknowns import beyond_the_costs
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Verdict, Witness

RULES: tuple[Callable[[Problem, Plan], Witness | None], ...] = (
    unlike_mirror,
    uncovered,
    wrong_size,
    wrong_choice,
    wrong_sharding,
    leaves_and_returns,
    cyclic_stages,
    wrong_placement,
    relayed_backwards,
)
"""The rules in the order in which they are tried; each may rely on those before it."""


def check_plan(problem: Problem, plan: Plan) -> Verdict:
    """The verdict on a plan: coverage, sizes, choices, C1, C2, C3, routing (GraphPipe section 4, C1-C3).

    In a plan of several pipelines each of them has to keep the rules, and all of them hold the same stages.
    `unknown` when the plan is well formed but the cost model cannot price it. Memory depends on the order of
    tasks and is judged with a schedule; pins are judged by `check_pins`.
    """
    for rule in RULES:
        witness = rule(problem, plan)
        if witness is not None:
            return Verdict(status="invalid", witness=witness)
    reason = beyond_the_costs(problem, plan)
    return Verdict(status="unknown", reason=reason) if reason else Verdict(status="valid")
