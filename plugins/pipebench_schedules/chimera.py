"""Chimera: two pipelines that run through the same devices in opposite directions (Li and Hoefler, SC 2021)."""

from pipebench.algorithms.orders.greedy import Order
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.shared_lanes import equal_micro_batches, shared_schedule, stages_by_lane


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Units of D micro-batches, half of them each way, one unit behind the other (section 3.5, "direct").

    D: stages of a pipeline, an even number. In a unit both pipelines run 1F1B. With tasks of one slot, stage k
    runs the forward of its micro-batch m in slot k + 2 m and its backward in slot 2 D - 1 - k + 2 m; a unit begins
    2 D slots behind the one before. No device then has two tasks in one slot (section 3.1, figure 3), and a device
    runs its tasks in this order whatever they take. The last unit may have fewer micro-batches.

    D micro-batches take D F + (2 D - 2) B without communication: (D - 2) / (2 N + D - 2) of the time is idle with
    B = F, (D - 2) / (3 N / 2 + D - 2) with B = 2 F (section 3.3, table 2). More of them, N = n D, keep to the
    first formula; with B = 2 F each unit behind the first adds D - 2 idle forwards, the bubbles that section 3.5
    speaks of: 3 N + (n + 1) (D - 2) forwards in all.

    Raises UnsupportedProblem for any placement but `mirrored`, an odd D, stages that differ in micro-batch, and
    what `shared_schedule` refuses, InvalidValue where micro-batches do not divide the mini-batch of a pipeline.
    """
    del context
    count = equal_micro_batches(problem, plan, "chimera")
    lanes = stages_by_lane(plan, "chimera", "mirrored")
    if len(lanes) % 2:
        raise UnsupportedProblem(
            f"chimera has an even number of stages in a pipeline, this plan has {len(lanes)}", "pin an even --pp"
        )
    orders = [(stages, _order(stages, plan.pipeline_length, count)) for stages in lanes]
    return shared_schedule(problem, plan, "chimera", orders)


def _order(stages: list[int], length: int, count: int) -> Order:
    """The tasks of a device by their slots.

    length: stages of a pipeline. count: micro-batches of each pipeline.
    """
    slots: list[tuple[int, str, int, int]] = []
    for number in range(count):
        unit, place = divmod(number, length // 2)
        begin = 2 * length * unit + 2 * place
        for stage in stages:
            k = stage % length
            slots += [(begin + k, "F", stage, number), (begin + 2 * length - 1 - k, "B", stage, number)]
    return [(kind, stage, number) for _, kind, stage, number in sorted(slots)]
