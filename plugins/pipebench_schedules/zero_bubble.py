"""Zero-bubble schedules: the backward split into input gradient I and weight gradient W (Qi et al. 2023 and
2024).
"""

from pipebench.algorithms.orders.greedy import Order
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.shared_lanes import equal_micro_batches, shared_schedule, stages_by_lane


def schedule_h1(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """ZB-H1: 1F1B whose device r keeps r weight gradients back, to run where 1F1B waits.

    No device holds more than the p micro-batches that device 0 holds under 1F1B (Qi et al. 2023, section 3.1).
    Raises UnsupportedProblem for several stages a device, and for what `shared_schedule` refuses.
    """
    del context
    count = equal_micro_batches(problem, plan, "zb-h1")
    lanes = stages_by_lane(plan, "zb-h1", "apart")
    orders = [(stages, _h1(stages[0], rank, len(lanes), count)) for rank, stages in enumerate(lanes)]
    return shared_schedule(problem, plan, "zb-h1", orders)


def _h1(stage: int, rank: int, devices: int, count: int) -> Order:
    warm = min(devices - rank - 1, count)
    order: Order = [("F", stage, number) for number in range(warm)]
    for number in range(count):
        if warm + number < count:
            order.append(("F", stage, warm + number))
        order.append(("I", stage, number))
        if number >= rank:
            order.append(("W", stage, number - rank))
    return order + [("W", stage, number) for number in range(max(0, count - rank), count)]


def schedule_v(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """ZB-V: device r runs stages r and 2 p - 1 - r, so that the last stage is on device 0 (Qi et al. 2024).

    The regular pattern for equal stages: warm-up with 2 (p - r) - 1 forwards of the first stage, then pairs; peak
    memory is that of 1F1B. Raises UnsupportedProblem for any other placement, for less than 2 p - 1 micro-batches,
    and for what `shared_schedule` refuses.
    """
    del context
    count = equal_micro_batches(problem, plan, "zb-v")
    lanes = stages_by_lane(plan, "zb-v", "v")
    least = 2 * len(lanes) - 1
    if count < least:
        raise UnsupportedProblem(
            f"zb-v needs at least {least} micro-batches on {len(lanes)} devices, there are {count}",
            "use a larger mini-batch, or zb-h1",
        )
    orders = [(stages, _v(stages[0], stages[1], rank, len(lanes), count)) for rank, stages in enumerate(lanes)]
    return shared_schedule(problem, plan, "zb-v", orders)


def _v(down: int, up: int, rank: int, devices: int, count: int) -> Order:
    """down: the stage on the way to the last device; up: the one on the way back."""
    order: Order = []
    done = {(kind, stage): 0 for kind in "FIW" for stage in (down, up)}

    def run(*tasks: tuple[str, int]) -> None:
        for kind, stage in tasks:
            if done[kind, stage] < count:
                order.append((kind, stage, done[kind, stage]))
                done[kind, stage] += 1

    for _ in range(2 * (devices - rank) - 1):
        run(("F", down))
    for _ in range(rank):
        run(("F", up), ("F", down))
    for _ in range(devices - rank):
        run(("F", up), ("I", up), ("W", up))
    while done["F", up] < count:
        run(("F", down), ("I", down), ("W", down), ("F", up), ("I", up), ("W", up))
    for _ in range(rank):
        run(("I", down), ("I", up))
    for _ in range(devices - rank):
        run(("I", down), ("W", down))
    for stage in (up, down):
        for _ in range(count - done["W", stage]):
            run(("W", stage))
    return order
