"""PlanResult: what a planner returns."""

import math
from typing import Literal

from pipebench.domain.plan import Plan
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value, require

Termination = Literal["optimal", "heuristic", "limit"]


class PlanResult(Value, frozen=True, kw_only=True):
    """A plan, what the planner states about it, and how its search ended.

    plan: the stages and their devices.
    schedule: the order of tasks that the plan brings; None leaves it to a scheduler.
    scheduler: the kind of schedule that the plan brings, for the tables.
    claimed_s: the planner's objective, in seconds for one mini-batch.
    claimed_native, claimed_unit: the same in the planner's own unit.
    lower_bound_s: a bound that the planner proved for its class of plans, in seconds for one mini-batch.
    bound_scope: the class of plans that `lower_bound_s` and the termination `optimal` are about, in words.
    termination: `optimal` if the plan is proven best in bound_scope, `limit` if a limit stopped the search.
    notices: lines for the row.

    An infeasible or unsupported problem is an exception (InfeasibleProblem, UnsupportedProblem), not a result.
    """

    plan: Plan
    schedule: Schedule | None = None
    scheduler: str = ""
    claimed_s: float | None = None
    claimed_native: float | None = None
    claimed_unit: str = ""
    lower_bound_s: float | None = None
    bound_scope: str = ""
    termination: Termination = "heuristic"
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("claimed_s", "claimed_native", "lower_bound_s"):
            number = getattr(self, name)
            require(number is None or math.isfinite(number), f"{name} is {number}, it must be finite")


class ProgramResult(PlanResult, frozen=True, kw_only=True):
    """What a program returns: a PlanResult, and the work that it counted.

    counters: name to a count, exact from run to run (states expanded, nodes, …).
    """

    counters: dict[str, int] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, amount in self.counters.items():
            require(amount >= 0, f"counter {name!r} is {amount}, a count is not negative")
