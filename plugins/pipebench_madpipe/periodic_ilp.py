"""The scheduler `periodic-ilp`: integer programming for the shortest periodic schedule of a plan."""

from pipebench.algorithms.plan_pattern import PlanPattern, periodic_schedule, plan_pattern
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench_madpipe.ilp import IlpAnswer, solve
from pipebench_madpipe.plugin import IlpOptions


def schedule(problem: Problem, plan: Plan, context: Context) -> PeriodicSchedule:
    """The schedule of shortest period whose memory fits: inside the reserve if possible, else at all.

    Counters: columns, rows and nodes of the program; `unproven` when the solver stopped at a limit. Raises
    UnsupportedProblem and InfeasibleProblem (see plan_pattern), also when the solver found none.
    """
    options = context.options
    assert isinstance(options, IlpOptions)
    model = CostModel(problem)
    for within_reserve in (True, False):
        try:
            described = plan_pattern(model, plan, within_reserve)
            answer = answered(described, options.seconds, options.nodes, context)
            return periodic_schedule(described, answer.instants, answer.period_ns)
        except InfeasibleProblem:
            if not (within_reserve and problem.pins.reserve):
                raise
    raise AssertionError("unreachable")


def answered(described: PlanPattern, seconds: float, nodes: int, context: Context) -> IlpAnswer:
    """The solver's answer, counted; raises InfeasibleProblem when it has no schedule."""
    answer = solve(described.pattern, seconds, nodes)
    for name in ("columns", "rows", "nodes"):
        context.count(name, getattr(answer, name))
    context.count("unproven", int(answer.status != "optimal"))
    if answer.period_ns > 0:
        return answer
    if answer.status == "infeasible":
        raise InfeasibleProblem(
            "the integer program of this plan has no solution: no periodic schedule fits its memory",
            "cut the stages that share a device into smaller ones, or use a smaller micro-batch",
        )
    raise InfeasibleProblem(
        f"the integer program of this plan ended without a schedule ({answer.status})",
        "give the solver more seconds or nodes, or use the scheduler periodic-bnb",
    )
