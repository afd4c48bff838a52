"""The scheduler `periodic-bnb`: branch and bound for the shortest periodic schedule of a plan."""

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench_madpipe.pattern import PlanPattern, busiest_ns, periodic_schedule, plan_pattern
from pipebench_madpipe.pattern_search import shortest_pattern
from pipebench_madpipe.plugin import BranchOptions


def schedule(problem: Problem, plan: Plan, context: Context) -> PeriodicSchedule:
    """The schedule of shortest period whose memory fits: inside the reserve if possible, else at all.

    Proven shortest unless counter `unproven` is set: then the search met its limit of nodes at some period.
    Raises UnsupportedProblem and InfeasibleProblem (see plan_pattern), also when no schedule was found.
    """
    options = context.options
    assert isinstance(options, BranchOptions)
    model = CostModel(problem)
    try:
        return _shortest(plan_pattern(model, plan), options.nodes, context)
    except InfeasibleProblem:
        if not problem.pins.reserve:
            raise
    return _shortest(plan_pattern(model, plan, within_reserve=False), options.nodes, context)


def _shortest(described: PlanPattern, most_nodes: int, context: Context) -> PeriodicSchedule:
    period, proven, nodes, instants = search(described, most_nodes)
    context.count("nodes", nodes)
    context.count("unproven", int(proven < period))
    if period < 0:
        raise InfeasibleProblem(
            f"no periodic schedule of this plan was found in {nodes} nodes of the search",
            "give the search more nodes, or cut the stages that share a device into smaller ones",
        )
    return periodic_schedule(described, instants, period)


def search(described: PlanPattern, most_nodes: int) -> tuple[int, int, int, IntArray]:
    """The period of the shortest schedule (-1: none found), a proven lower bound on it, nodes and instants."""
    low = busiest_ns(described.pattern)
    return shortest_pattern(described.pattern, low, max(low, described.row_ns) + 1, most_nodes)
