"""Plans that nothing can be drawn, priced or run of: one line that says which rule is broken."""

from pipebench.check.plan import check_plan
from pipebench.check.schedule import check_schedule
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.verdict import Verdict

HINT = "`pipebench validate FILE` judges a plan"


def why(verdict: Verdict) -> str:
    """The broken rule with its message, or the reason why the verdict is not known."""
    return f"{verdict.witness.rule}: {verdict.witness.message}" if verdict.witness else verdict.reason


def require_valid_plan(problem: Problem, plan: Plan) -> None:
    """Raises PipebenchError for a plan that `check_plan` does not find valid."""
    verdict = check_plan(problem, plan)
    if verdict.status != "valid":
        raise PipebenchError(f"the plan is {verdict.status}: {why(verdict)}", HINT)


def require_ordered(problem: Problem, plan: Plan, schedule: Schedule) -> None:
    """Raises PipebenchError for a plan that is not valid, and for a schedule whose tasks cannot run in its order.

    Memory is not looked at: what does not fit can be drawn and simulated.
    """
    require_valid_plan(problem, plan)
    verdict = check_schedule(problem, plan, schedule)
    if not verdict.peak_bytes:
        raise PipebenchError(f"the schedule is {verdict.status}: {why(verdict)}", HINT)
