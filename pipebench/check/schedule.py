"""Is a schedule of a plan valid: order, dependencies, resources, memory?"""

from pipebench.check.declared_flight import finite_excess
from pipebench.check.finite import broken_order
from pipebench.check.finite_memory import finite_memory
from pipebench.check.periodic import check_periodic
from pipebench.check.plan import check_plan
from pipebench.check.tasks import finite_tasks
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.domain.verdict import Verdict, with_witness


def check_schedule(problem: Problem, plan: Plan, schedule: Schedule, *, strict_buffers: bool = False) -> Verdict:
    """The verdict on a plan with its schedule: `check_plan`, then order of tasks, then memory, then
    that no stage keeps more in flight than it declares.

    Finite: lanes, every task once, C4 with sample coverage, memory at every task boundary; in async with
    the memory of async. Periodic (async only): dependencies with index shifts, one operation at a time on
    every device and link, memory over one period. strict_buffers: a periodic transfer's buffers hold one
    tensor each (see `buffers`).
    """
    verdict = check_plan(problem, plan)
    if verdict.status != "valid":
        return verdict
    model = CostModel(problem)
    if isinstance(schedule, PeriodicSchedule):
        return check_periodic(problem, model, plan, schedule, strict_buffers=strict_buffers)
    tasks = finite_tasks(problem, plan, schedule)
    witness = broken_order(model, plan, schedule, tasks)
    if witness is not None:
        return Verdict(status="invalid", witness=witness)
    return with_witness(finite_memory(problem, model, plan, schedule, tasks), finite_excess(plan, tasks))
