"""Schedules of devices that run several stages in turn: who shares, and the lane with its all-reduces."""

from pipebench.costs.lanes import lanes_of
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, Lane

Order = list[tuple[str, int, int]]
"""Tasks of one lane: (kind, stage, micro-batch)."""


def equal_micro_batches(problem: Problem, plan: Plan, scheduler: str) -> int:
    """Micro-batches of every stage in one mini-batch.

    Raises UnsupportedProblem where stages differ in micro-batch, InvalidValue where it does not divide.
    """
    sizes = {stage.micro_batch for stage in plan.stages}
    if len(sizes) > 1:
        raise UnsupportedProblem(f"{scheduler} has one micro-batch for all stages, these have {sorted(sizes)}")
    count, left = divmod(problem.mini_batch, plan.stages[0].micro_batch * plan.all_pipelines)
    if left:
        raise InvalidValue(
            f"micro-batches of {sizes} on {plan.all_pipelines} pipelines do not divide {problem.mini_batch}"
        )
    return count


def stages_by_lane(plan: Plan, scheduler: str, vee: bool = False) -> list[list[int]]:
    """The stages of each lane, in order. Stage k runs on lane k % lanes; vee: lane r has stages r and 2 p - 1 - r.

    Raises UnsupportedProblem for any other placement.
    """
    lanes, lane_of = lanes_of(plan)
    count = len(lanes)
    for stage, lane in enumerate(lane_of):
        wanted = min(stage, 2 * count - 1 - stage) if vee else stage % count
        if lane != wanted:
            shape = "in a V: r and 2 p - 1 - r" if vee else "in turn: k, k + p, …"
            raise UnsupportedProblem(
                f"{scheduler} wants stages on {count} device sets {shape}; stage {stage} is on set {lane}, "
                f"not {wanted}",
                "pin --vpp, or use a scheduler for one stage a device",
            )
    rounds, left = divmod(len(lane_of), count)
    if left or (vee and rounds != 2):
        wanted_number = "exactly 2" if vee else "as many on each"
        raise UnsupportedProblem(
            f"{scheduler} wants {wanted_number} stages a device set, {len(lane_of)} on {count} are not"
        )
    return [[stage for stage, lane in enumerate(lane_of) if lane == number] for number in range(count)]


def shared_lane(problem: Problem, plan: Plan, stages: list[int], order: Order) -> Lane:
    """The lane that runs `order`, then the all-reduces of its replicated stages, the last stage first (sync)."""
    model = CostModel(problem)
    behind = [
        (ALL_REDUCE, stage, 0) for stage in reversed(stages) if model.needs_update_task(plan.stages[stage], plan)
    ]
    tasks = [*order, *behind]
    return Lane(
        devices=plan.stages[stages[0]].devices,
        stage=tuple(stage for _, stage, _ in tasks),
        micro_batch=tuple(number for _, _, number in tasks),
        kinds="".join(kind for kind, _, _ in tasks),
    )
