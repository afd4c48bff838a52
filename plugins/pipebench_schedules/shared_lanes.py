"""Schedules of devices that run several stages: who shares, and the lane with its all-reduces."""

from collections.abc import Iterable

from pipebench.algorithms.orders.greedy import Order
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.placement import PlacementKind, placement_kind_of, stands_as
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, FiniteSchedule, Lane
from pipebench_schedules.refusals import LISTED_BEHIND, allowed, declares

_WORDS: dict[PlacementKind, str] = {
    "apart": "of one a device set",
    "in-turn": "in turn, as many on each device set: k, k + p, …",
    "v": "in a V, two on each device set: r and 2 p - 1 - r",
    "mirrored": "of two pipelines that run through the device sets in opposite directions",
}


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


def stages_by_lane(plan: Plan, scheduler: str, placement: PlacementKind) -> list[list[int]]:
    """The stages of each lane, in order, of a plan that stands as `placement`.

    Raises UnsupportedProblem for one that stands otherwise.
    """
    devices = [stage.devices for stage in plan.stages]
    if not stands_as(placement, devices, plan.pipelines):
        found = placement_kind_of(devices, plan.pipelines)
        raise UnsupportedProblem(
            f"{scheduler} takes stages {_WORDS[placement]}; these are placed {found!r}",
            "pin --vpp, or use a scheduler for plans that stand so",
        )
    lanes, lane_of = lanes_of(plan)
    return [[stage for stage, lane in enumerate(lane_of) if lane == number] for number in range(len(lanes))]


def shared_schedule(
    problem: Problem, plan: Plan, scheduler: str, orders: Iterable[tuple[list[int], Order]]
) -> FiniteSchedule:
    """The lanes that run these orders of these stages.

    The orders are for stages that wait only for those listed before them. Raises UnsupportedProblem where they do
    not allow the plan: others may wait for ever, and stages may declare less in flight.
    """
    model = CostModel(problem)
    made = FiniteSchedule(lanes=tuple(shared_lane(model, plan, stages, order) for stages, order in orders))
    listed = all(before < after for before, after in stage_edges(model.graph, plan))
    return made if listed and not declares(plan) else allowed(problem, plan, made, scheduler, LISTED_BEHIND)


def shared_lane(model: CostModel, plan: Plan, stages: list[int], order: Order) -> Lane:
    """The lane that runs `order`, then the all-reduces of its replicated stages, the last stage first (sync).

    Stages that hold the same operators, one in each pipeline, reduce together: lanes come to them in one order.
    """
    behind = [
        (ALL_REDUCE, stage, 0)
        for stage in sorted(stages, key=lambda stage: -(stage % plan.pipeline_length))
        if model.needs_update_task(plan.stages[stage], plan)
    ]
    kinds, of_stage, micro_batch = zip(*order, *behind, strict=True)
    return Lane(
        devices=plan.stages[stages[0]].devices, stage=of_stage, micro_batch=micro_batch, kinds="".join(kinds)
    )
