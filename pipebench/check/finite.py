"""The rules of a finite schedule, apart from memory."""

from pipebench.check.completeness import missing_or_repeated, out_of_range, wrong_all_reduce
from pipebench.check.deadlock import deadlock, waits
from pipebench.check.lane_order import wrong_lane_order
from pipebench.check.lanes import wrong_lane
from pipebench.check.precedence import waiting_stages
from pipebench.check.tasks import Tasks
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.verdict import Witness


def broken_order(model: CostModel, plan: Plan, schedule: FiniteSchedule, tasks: Tasks) -> Witness | None:
    """The first rule that the order of tasks breaks: lanes, every task once, order in a lane, deadlock."""
    return (
        wrong_lane(plan, [(lane.devices, lane.stage) for lane in schedule.lanes])
        or out_of_range(tasks)
        or missing_or_repeated(tasks)
        or wrong_all_reduce(model, plan, tasks)
        or wrong_lane_order(tasks)
        or deadlock(tasks, waits(plan, tasks, waiting_stages(model, plan)))
    )
