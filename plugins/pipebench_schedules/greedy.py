"""Greedy list scheduling (Graham 1969): whenever a device is free, it runs what it can start first."""

from decimal import Decimal

from pipebench.algorithms.orders.greedy import best_order
from pipebench.algorithms.orders.numbers_in_flight import numbers_in_flight
from pipebench.algorithms.orders.tables import Tables
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.plugin import GreedyOptions
from pipebench_schedules.shared_lanes import equal_micro_batches, shared_lane

MOST_LOOKED_AT = 2**21
"""Stages looked at in all orders that are tried; it counts, so that the answer does not depend on the machine."""


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """The fastest of several greedy orders that fits in memory, by a clock; with `links` messages share links.

    Of the tasks of a device that can start first, a backward goes before a forward and this before a weight
    gradient; of equal ones the smaller micro-batch and then the later stage. The orders differ in how many
    micro-batches a stage keeps in flight (as many as stages follow it, one more, twice as many, any number, half
    as many, one; not more than `live` allows or the plan declares) and in whether weight gradients are tasks of
    their own, which fill waits. What the plan declares is tried first.

    Forwards wait for memory: where one micro-batch in each stage fits, every order does. The one with the smallest
    excess where none fits. Raises UnsupportedProblem where stages differ in micro-batch
    and where there are more tasks than can be listed.
    """
    count = equal_micro_batches(problem, plan, "greedy")
    options = context.options
    assert isinstance(options, GreedyOptions)
    model = CostModel(problem)
    tables = Tables.of(model, plan, count, options.links)
    most = most_live(options.live, len(tables.held)) if options.live else count
    looks = 2 * len(plan.stages) ** 2 * count
    if looks > MOST_LOOKED_AT:
        raise UnsupportedProblem(
            f"greedy looks at {MOST_LOOKED_AT} stages at most, this plan would take {looks}",
            "use a larger micro-batch or fewer stages",
        )
    tried = _tried(tables, min(most, count), [stage.in_flight // stage.micro_batch for stage in plan.stages])[
        : max(1, MOST_LOOKED_AT // (2 * looks))
    ]
    context.count("orders", len(tried))
    best = best_order(tables, tried)
    return FiniteSchedule(
        lanes=tuple(
            shared_lane(model, plan, [s for s, at in enumerate(tables.lane_of) if at == lane], order)
            for lane, order in enumerate(best.orders)
        )
    )


def _tried(tables: Tables, most: int, declared: list[int]) -> list[tuple[list[int], bool]]:
    """Micro-batches in flight of each stage, and whether backwards are split. declared: by the plan; 0: any."""
    free, held = numbers_in_flight(tables, most)
    splits = (False, True) if any(tables.weight) else (False,)
    tried = [(each, split) for split in splits for each in (*free, *held)]
    if any(declared):
        allowed = [min(most, own or most) for own in declared]
        fewer = [([min(pair) for pair in zip(each, allowed, strict=True)], split) for each, split in tried]
        tried = [*((allowed, split) for split in splits), *fewer]
    return tried


def most_live(live: float, devices: int) -> int:
    """Whole micro-batches in `live` times the devices, at least 1; live: the decimal that it prints as."""
    return max(1, int(Decimal(str(live)) * devices))
