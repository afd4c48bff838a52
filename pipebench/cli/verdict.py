"""The verdict on a plan file: the suite's own judgement, with or without a schedule."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipebench.domain.document import PlannedProblem
    from pipebench.domain.verdict import Verdict


def verdict_of(planned: "PlannedProblem") -> "Verdict":
    """As `compare` judges it, pins included; without a schedule, what can be said before there is one."""
    from pipebench.bench.score import judge
    from pipebench.check import check_pins, check_plan
    from pipebench.domain.verdict import with_witness

    if planned.schedule is not None:
        return judge(planned.problem, planned.plan, planned.schedule)
    verdict = check_plan(planned.problem, planned.plan)
    if verdict.status == "invalid":
        return verdict
    return with_witness(verdict, check_pins(planned.problem, planned.plan).witness)
