"""How many mini-batches a run holds, and by how many updates its weights lag."""

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench_torch.placing.layout import Layout, layout_of
from pipebench_torch.placing.orders import delay_of, lane_orders
from pipebench_torch.placing.shared_weights import refuse_split_weights
from pipebench_torch.plugin import ExecutorOptions


def rounds_of(problem: Problem, plan: Plan, schedule: Schedule, options: ExecutorOptions) -> tuple[Layout, int]:
    """The layout and the delay: a finite schedule is one mini-batch, a periodic one runs over several.

    Raises UnsupportedProblem where stages share a weight.
    """
    refuse_split_weights(problem.profile.graph, plan)
    if not isinstance(schedule, PeriodicSchedule):
        return layout_of(plan, problem.mini_batch), 0
    rounds = max(3, options.warmup + options.iterations)
    while True:
        layout = layout_of(plan, problem.mini_batch, rounds)
        delay = delay_of(layout, list(lane_orders(problem, plan, schedule, layout).values()))
        if rounds >= delay + 3:
            return layout, delay
        rounds = delay + 3
