"""What a planner found for a problem in blocks, given back in operators."""

from dataclasses import replace as replace_search

from msgspec.structs import replace

from pipebench.algorithms.coarse import CoarseProblem
from pipebench.bench.searches.isolated import TimedSearch
from pipebench.bench.searches.request import Fitting, SearchReport
from pipebench.costs.model import CostModel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import PeriodicSchedule


def in_operators(done: TimedSearch, problem: Problem, coarse: CoarseProblem, refused: str = "") -> TimedSearch:
    """The search with its plan in the operators of `problem`; a plan that splits a block is unsupported.

    refused: why there are fewer blocks than were asked for.

    What the planner claims stays as it is; what it proves is about plans whose stages are whole blocks, and the
    scope says so. An order stays, except where it holds instants that other times of stages would make wrong.
    """
    report, blocks = done.report, len(coarse.problem.profile.graph.operators)
    if report.smallest is not None:
        report = replace(report, smallest=fitting_in_operators(report.smallest, coarse))
        return replace_search(done, report=report)
    result = report.result
    if result is None or blocks == len(problem.profile.graph.operators):
        return done
    try:
        plan = coarse.expand(result.plan)
    except PipebenchError as error:
        report = SearchReport(status="unsupported", reason=str(error), compile_s=report.compile_s)
        return replace_search(done, report=report)
    return replace_search(done, report=replace(report, result=_result(result, plan, problem, coarse, refused)))


def fitting_in_operators(fitting: Fitting, coarse: CoarseProblem) -> Fitting | None:
    """The plan for more memory in operators; None where it splits a block."""
    try:
        plan = coarse.expand(fitting.plan)
    except PipebenchError:
        return None
    return replace(fitting, plan=plan)


def _result(result: PlanResult, plan: Plan, problem: Problem, coarse: CoarseProblem, refused: str) -> PlanResult:
    blocks, operators = len(coarse.problem.profile.graph.operators), len(problem.profile.graph.operators)
    notices = [
        f"planned on {blocks} blocks of {operators} operators; to join them is not in the search time",
        *([refused] if refused else []),
        *result.notices,
    ]
    schedule = result.schedule
    if isinstance(schedule, PeriodicSchedule) and not _takes_as_long(result.plan, plan, problem, coarse):
        schedule = None
        notices.append("its schedule is left out: stages take other nanoseconds operator by operator")
    scope = f"{result.bound_scope}; stages of whole blocks" if result.bound_scope else ""
    return replace(result, plan=plan, schedule=schedule, bound_scope=scope, notices=tuple(notices))


def _takes_as_long(in_blocks: Plan, plan: Plan, problem: Problem, coarse: CoarseProblem) -> bool:
    """Whether every stage takes the same time; its messages are the same in any case."""
    try:
        blocks, operators = CostModel(coarse.problem), CostModel(problem)
        return all(
            blocks.stage_times(one, in_blocks) == operators.stage_times(other, plan)
            for one, other in zip(in_blocks.stages, plan.stages, strict=True)
        )
    except (PipebenchError, KeyError, IndexError, ValueError):
        return True  # the check says what is wrong with the plan
