"""What the finite schedules share: who can be ordered, and the all-reduce at the end of a lane."""

from collections.abc import Sequence

from pipebench.algorithms.micro_batches import MOST_STEPS
from pipebench.costs.lanes import lanes_of
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, Lane


def micro_batch_counts(problem: Problem, plan: Plan, scheduler: str) -> list[int]:
    """Micro-batches of each stage in one mini-batch.

    Raises UnsupportedProblem when stages share devices (this scheduler has no order for them) or there are
    more micro-batches than can be listed, InvalidValue when a micro-batch does not divide the mini-batch of one
    copy of the pipeline.
    """
    _, lane_of = lanes_of(plan)
    for position, lane in enumerate(lane_of):
        if lane_of.index(lane) < position:
            raise UnsupportedProblem(
                f"{scheduler} has no order for stages on the same devices: stages {lane_of.index(lane)} and "
                f"{position} share {list(plan.stages[position].devices)}",
                "use a periodic schedule that the planner makes, or a plan with devices for each stage",
            )
    counts: list[int] = []
    for position, stage in enumerate(plan.stages):
        count, left = divmod(problem.mini_batch, stage.micro_batch * plan.all_pipelines)
        if left:
            raise InvalidValue(
                f"stage {position}: micro-batches of {stage.micro_batch} samples on {plan.all_pipelines} "
                f"pipelines do not divide a mini-batch of {problem.mini_batch}"
            )
        counts.append(count)
    if sum(counts) > MOST_STEPS:
        raise UnsupportedProblem(
            f"{scheduler} orders at most {MOST_STEPS} stages x micro-batches, this plan has {sum(counts)}",
            "use larger micro-batches or a smaller mini-batch",
        )
    return counts


def lane(problem: Problem, plan: Plan, position: int, tasks: Sequence[tuple[str, Sequence[int]]]) -> Lane:
    """The lane of a stage that runs these runs of (kind, micro-batches), then its all-reduce.

    There is one in sync where the update takes time (async spreads it over the backwards).
    """
    stage = plan.stages[position]
    kinds = "".join(kind * len(numbers) for kind, numbers in tasks)
    micro_batch = tuple(number for _, numbers in tasks for number in numbers)
    if CostModel(problem).needs_update_task(stage, plan):
        kinds += ALL_REDUCE
        micro_batch += (0,)
    return Lane(devices=stage.devices, stage=(position,) * len(kinds), micro_batch=micro_batch, kinds=kinds)
