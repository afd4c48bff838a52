"""A plan made elsewhere takes part in a comparison like a planner whose search took no time."""

from pathlib import Path

from pipebench.bench.components import Ready
from pipebench.check import check_plan
from pipebench.defaults import scheduler_for, schedulers
from pipebench.domain.document import PlannedProblem
from pipebench.domain.errors import InvalidValue
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.value import digest
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import Capabilities, NoOptions, Planner
from pipebench.hooks.discovery import Provider


def ready_plan(path: str, planned: PlannedProblem) -> Ready:
    """The plan as a planner. Its schedule counts only on the very problem that it was made for."""

    def call(problem: Problem, context: Context) -> PlanResult:
        del context
        same = problem.problem_id == planned.problem.problem_id
        verdict = check_plan(problem, planned.plan)
        if not same and verdict.status == "invalid" and verdict.witness is not None:
            theirs, ours = planned.problem.profile.name, problem.profile.name
            raise InvalidValue(f"planned for {theirs}, not for {ours}: {verdict.witness.message}", "plan again")
        notices = () if same else (f"planned for another problem ({planned.problem.profile.name})",)
        return PlanResult(plan=planned.plan, schedule=planned.schedule if same else None, notices=notices)

    mode = planned.problem.regime.mode
    component = Planner(
        name=Path(path).name,
        summary="a plan made elsewhere",
        load="",
        capabilities=Capabilities(regimes=(mode,)),
        default_scheduler=schedulers() | {mode: scheduler_for(mode, planned.plan.placement)},
    )
    return Ready(
        component.name,
        component,
        NoOptions(),
        lambda: call,
        Provider("user", "", "file"),
        here=True,
        source=digest(planned),
    )
