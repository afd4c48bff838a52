"""The scheduler `modulo`: a pattern that repeats, each task and message as early as it may be."""

from pipebench.algorithms.chains.one_f_one_b_star import placed_schedule
from pipebench.algorithms.orders.modulo import ModuloPattern, modulo_pattern
from pipebench.algorithms.orders.tables import AHEAD, ANY, BACK, SENDER, Tables
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench.domain.topology import topological_order
from pipebench.hooks.context import Context
from pipebench_schedules.shared_lanes import equal_micro_batches


def schedule(problem: Problem, plan: Plan, context: Context) -> PeriodicSchedule:
    """The pattern of the shortest period that is found, inside the reserve if possible.

    Stages keep to what they declare in flight.
    Forwards are placed down the stages and backwards up again, each in the first gap of its device, messages in
    the first one of their link.
    Raises UnsupportedProblem in sync, with an overlap and where stages differ in micro-batch, InfeasibleProblem
    where no pattern is found that fits.
    """
    if problem.regime.mode != "async":
        raise UnsupportedProblem("modulo never flushes: it is for the async regime only")
    if problem.overlap:
        raise UnsupportedProblem("modulo runs one task at a time on a device, the problem has an overlap")
    count = equal_micro_batches(problem, plan, "modulo")
    model = CostModel(problem)
    tables = Tables.of(model, plan, count, links=True, patterns=True)
    after: list[list[int]] = [[] for _ in plan.stages]
    for before, behind in stage_edges(model.graph, plan):
        after[before].append(behind)
    stages = topological_order(after, [str(at) for at in range(len(after))])
    most_live = [stage.in_flight // stage.micro_batch or ANY for stage in plan.stages]
    for limits in zip(*tables.limits, strict=True):
        context.count("patterns")
        found = modulo_pattern(tables, stages, limits, most_live)
        if found is not None:
            return _schedule(tables, found, _unsent(model, plan))
    raise InfeasibleProblem(
        "modulo found no pattern that fits in memory", "name periodic-bnb, or cut the stages into smaller ones"
    )


def _unsent(model: CostModel, plan: Plan) -> set[tuple[int, int]]:
    """Order edges along which nothing is sent."""
    if not plan.order_edges:
        return set()
    return set(plan.order_edges) - {(message.source, message.target) for message in model.messages(plan)}


def _schedule(tables: Tables, found: ModuloPattern, unsent: set[tuple[int, int]]) -> PeriodicSchedule:
    runs = [
        (stage, name, int(found.task_ns[kind, stage]))
        for kind, name in ((AHEAD, FORWARD), (BACK, BACKWARD))
        for stage in range(len(tables.forward))
    ]
    first, rows = tables.waits.first, tables.waits.rows
    sends = [
        (int(rows[row, SENDER]), stage, name, int(found.message_ns[row]))
        for kind, name in ((AHEAD, FORWARD), (BACK, BACKWARD))
        for stage in range(len(tables.forward))
        for row in range(int(first[kind, stage]), int(first[kind, stage + 1]))
        if tables.lane_of[int(rows[row, SENDER])] != tables.lane_of[stage]
        and not {(int(rows[row, SENDER]), stage), (stage, int(rows[row, SENDER]))} & unsent
    ]
    return placed_schedule(found.period_ns, runs, sends)
