"""An allocation as a plan with its schedule."""

from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from pipebench.algorithms.chains.chain import Chain
from pipebench.algorithms.chains.contiguous_plan import contiguous_plan
from pipebench.algorithms.chains.one_f_one_b_star import groups, one_f_one_b_star
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench_madpipe.allocation import Allocation
from pipebench_madpipe.class_search import PeriodicAllocation
from pipebench_madpipe.pattern import PlanPattern, periodic_schedule, plan_pattern


def scheduled_plan(model: CostModel, chain: Chain, found: PeriodicAllocation) -> tuple[Plan, PeriodicSchedule]:
    """The plan and its schedule: 1F1B*, or the instants that the search found."""
    if found.instants is None:
        live = groups(chain.items(found.allocation.bounds), found.period_ns)[::2]
        plan = contiguous_plan(model, chain, found.allocation.bounds, [int(group) for group in live])
        return plan, one_f_one_b_star(model, plan)
    lived = live_micro_batches(found.allocation, found.instants, chain, found.period_ns)
    plan = allocation_plan(model, chain, found.allocation, lived)
    described = plan_pattern(model, plan, within_reserve=False)
    return plan, periodic_schedule(described, _instants_of_plan(described, found), found.period_ns)


def allocation_plan(model: CostModel, chain: Chain, allocation: Allocation, live: list[int] | None = None) -> Plan:
    """Stages of the allocation in chain order; the special GPU is numbered where its first stage is."""
    plan = contiguous_plan(model, chain, allocation.bounds, live)
    devices: list[int] = []
    special = -1
    following = 0
    for inside in allocation.special:
        if inside and special >= 0:
            devices.append(special)
            continue
        devices.append(following)
        special = following if inside else special
        following += 1
    stages = tuple(replace(stage, devices=(device,)) for stage, device in zip(plan.stages, devices, strict=True))
    return replace(plan, stages=stages, placement="listed" if allocation.special.count(True) > 1 else "apart")


def operations_of(allocation: Allocation) -> list[tuple[str, int, int]]:
    """The operations of allocation_pattern: kind, stage, and for a transfer the stage that receives it."""
    special = allocation.special
    forward: list[tuple[str, int, int]] = []
    backward: list[tuple[str, int, int]] = []
    for stage in range(len(special)):
        if stage and not (special[stage - 1] and special[stage]):
            forward.append((FORWARD, stage - 1, stage))
            backward.append((BACKWARD, stage, stage - 1))
        forward.append((FORWARD, stage, -1))
        backward.append((BACKWARD, stage, -1))
    # Back along the chain: the transfer of a stage follows its backward.
    return forward + [backward[i] for i in range(len(backward) - 1, -1, -1)]


def live_micro_batches(allocation: Allocation, instants: IntArray, chain: Chain, period: int) -> list[int]:
    """The most micro-batches of each stage that are in flight at once."""
    at = dict(zip(operations_of(allocation), map(int, instants), strict=True))
    live = []
    for stage, (first, end) in enumerate(pairwise(allocation.bounds)):
        lasts = chain.backward_ns(first, end)
        live.append(max(1, -((at[FORWARD, stage, -1] - at[BACKWARD, stage, -1] - lasts) // period)))
    return live


def _instants_of_plan(described: PlanPattern, found: PeriodicAllocation) -> IntArray:
    assert found.instants is not None
    at = dict(zip(operations_of(found.allocation), map(int, found.instants), strict=True))
    return np.array([at[operation] for operation in described.operations], np.int64)
