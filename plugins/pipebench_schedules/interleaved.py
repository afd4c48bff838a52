"""Interleaved 1F1B: devices with several stages in turn (Narayanan et al. 2021, Megatron-LM, section 2.2)."""

import numpy as np

from pipebench.algorithms.orders.greedy import Order
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.shared_lanes import equal_micro_batches, shared_schedule, stages_by_lane


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Micro-batches go through in groups of p, each group through all stages of a device before the next.

    Device r of p with v stages warms up with 2 (p - r - 1) + (v - 1) p forwards (v = 1: p - r - 1), then a forward
    and a backward in turn, then the backwards that are left.

    Raises UnsupportedProblem for stages that are not placed in turn, where p does not divide the micro-batches
    (v > 1), and for what `shared_schedule` refuses.
    """
    del context
    count = equal_micro_batches(problem, plan, "interleaved-1f1b")
    lanes = stages_by_lane(plan, "interleaved-1f1b", "in-turn")
    devices, rounds = len(lanes), len(lanes[0])
    if rounds > 1 and count % devices:
        raise UnsupportedProblem(
            f"interleaved-1f1b runs micro-batches in groups of {devices}, one a device; there are {count}",
            f"use a mini-batch of a multiple of {devices} micro-batches",
        )
    orders = [(stages, _order(stages, rank, devices, count)) for rank, stages in enumerate(lanes)]
    return shared_schedule(problem, plan, "interleaved-1f1b", orders)


def _order(stages: list[int], rank: int, devices: int, count: int) -> Order:
    rounds, total = len(stages), count * len(stages)
    ahead = devices - rank - 1
    warm = min(total, ahead if rounds == 1 else 2 * ahead + (rounds - 1) * devices)
    group, inside = np.divmod(np.arange(total), devices * rounds)
    round_, place = np.divmod(inside, devices)
    kinds = "F" * warm + "FB" * (total - warm) + "B" * warm
    forward = np.array([kind == "F" for kind in kinds])
    stage, micro_batch = np.empty(2 * total, np.int64), np.empty(2 * total, np.int64)
    for tasks, rounds_of in ((forward, round_), (~forward, rounds - 1 - round_)):
        stage[tasks] = np.array(stages)[rounds_of]
        micro_batch[tasks] = group * devices + place
    return list(zip(kinds, stage.tolist(), micro_batch.tolist(), strict=True))
