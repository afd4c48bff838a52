"""Does a trace tell of a valid run of a schedule?"""

from pipebench.check.finite import broken_order
from pipebench.check.periodic_operations import read_pattern
from pipebench.check.plan import check_plan
from pipebench.check.precedence import waiting_stages
from pipebench.check.tasks import finite_tasks
from pipebench.check.trace_links import crowded_link
from pipebench.check.trace_memory import trace_memory
from pipebench.check.trace_ports import crowded_port
from pipebench.check.trace_times import broken_precedence, overlap_in_lane, wrong_duration
from pipebench.check.trace_transfers import wrong_transfer
from pipebench.check.traced import Traced, traced_as_scheduled, traced_periods
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.verdict import Verdict, Witness


def check_trace(
    problem: Problem, plan: Plan, schedule: Schedule, trace: Trace, *, tolerance_ns: int = 0
) -> Verdict:
    """The verdict on a trace: tasks as scheduled, one at a time, precedences, transfers, links, memory.

    Simulated traces must have the durations of the cost model and every transfer that takes time; measured
    ones may lack transfers, and theirs last from the call that sends to the end of the one that receives, so that
    they may share a link. tolerance_ns: how far two clocks may disagree. A periodic schedule's trace holds
    the same micro-batches 0, 1, … of every stage. The schedule's own memory is judged by `check_schedule`.
    """
    verdict = check_plan(problem, plan)
    if verdict.status != "valid":
        return verdict
    model = CostModel(problem)
    traced = _traced(problem, model, plan, schedule, trace)
    if isinstance(traced, Witness):
        return Verdict(status="invalid", witness=traced)
    simulated = trace.origin == "simulated"
    witness = (
        wrong_duration(model, plan, traced, simulated)
        or overlap_in_lane(traced, tolerance_ns)
        or broken_precedence(plan, traced, waiting_stages(model, plan), tolerance_ns)
        or wrong_transfer(model, plan, traced, trace, tolerance_ns)
        or (crowded_link(plan, trace, problem.cluster.link_mode, tolerance_ns) if simulated else None)
        or (crowded_port(model, plan, trace, tolerance_ns) if simulated else None)
    )
    if witness is not None:
        return Verdict(status="invalid", witness=witness)
    return trace_memory(problem, plan, trace)


def _traced(problem: Problem, model: CostModel, plan: Plan, schedule: Schedule, trace: Trace) -> Traced | Witness:
    if isinstance(schedule, PeriodicSchedule):
        pattern = read_pattern(problem, model, plan, schedule)
        return pattern if isinstance(pattern, Witness) else traced_periods(plan, trace)
    tasks = finite_tasks(problem, plan, schedule)
    return broken_order(model, plan, schedule, tasks) or traced_as_scheduled(plan, tasks, trace)
