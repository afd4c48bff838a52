"""Plans that fit by the suite's memory, for searches whose own memory model counts less."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from pipebench.algorithms.in_flight import in_flight
from pipebench.costs.formula import ENDLESS
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem

Found = TypeVar("Found")
MOST_TRIES = 16
"""Searches at one limit."""


def live_micro_batches(problem: Problem, plan: Plan) -> list[int]:
    """Micro-batches that each stage holds under 1F1B: as many as the plan says, else as the in-flight rule.

    Of replicas in turn, those of the replica that holds the most. Without a flush there may be more than one
    mini-batch has: the next one follows at once.
    """
    at_once = problem.mini_batch // plan.all_pipelines if problem.regime.mode == "sync" else ENDLESS
    kept = in_flight(
        [stage.micro_batch for stage in plan.stages],
        [stage.k for stage in plan.stages],
        stage_edges(problem.profile.graph, plan),
        at_once,
        turns=[stage.turns for stage in plan.stages],
    )
    found = []
    for stage, samples in zip(plan.stages, kept, strict=True):
        each = stage.micro_batch * stage.turns
        wanted = stage.in_flight // stage.micro_batch or -(-samples // each)
        found.append(min(-(-(at_once // stage.micro_batch) // stage.turns), wanted))
    return found


def excess_bytes(problem: Problem, plan: Plan, limits: Sequence[int], live: Sequence[int] | None = None) -> int:
    """Bytes by which the suite's memory of some stage passes its limit, at most; 0 or less where all fit.

    limits: of the devices of each stage. live: micro-batches that each stage holds; None: `live_micro_batches`.
    """
    model = CostModel(problem)
    edges = model.messages(plan)
    held = live_micro_batches(problem, plan) if live is None else live
    return max(
        model.stage_memory(plan, position, edges).peak(count) - limit
        for position, (count, limit) in enumerate(zip(held, limits, strict=True))
    )


def at_full_pace(problem: Problem, plan: Plan, limit_bytes: int) -> Plan:
    """The plan with as many micro-batches in flight as the in-flight rule says, where that fits; else as it is.

    For sync plans whose replicas take micro-batches in turn. The rule keeps every stage at the pace of the slowest
    one; that may take more than the planner counts.
    """
    live = live_micro_batches(problem, plan.without_in_flight())
    stages = tuple(
        replace(stage, in_flight=max(stage.in_flight, count * stage.micro_batch))
        for stage, count in zip(plan.stages, live, strict=True)
    )
    wider = replace(plan, stages=stages)
    return wider if excess_bytes(problem, wider, [limit_bytes] * len(stages)) <= 0 else plan


def search_within(
    limit_bytes: float, best: Callable[[float], Found | None], excess: Callable[[Found], int]
) -> Found | None:
    """The first of the search's own answers that fits, at less and less memory; None where none was met.

    best: the search's answer within so many bytes. excess: by how many bytes the answer passes the limit.
    Each answer that does not fit lowers what the search may plan for by its excess, and by twice the last step at
    least. Where the search then finds nothing, half of that is given back, and so on. An answer is what the
    search likes best, so a plan that fits is missed where at every limit tried another one is liked better that
    does not fit.
    """
    too_much, too_little, step = float(limit_bytes), -1.0, 0.0
    planned = too_much
    for _ in range(MOST_TRIES):
        found = best(planned)
        if found is None:
            if planned == limit_bytes:
                return None
            too_little = planned
            planned = (too_little + too_much) / 2
        else:
            over = excess(found)
            if over <= 0:
                return found
            too_much = planned
            step = max(over, 2 * step)
            less = max(planned - step, 0.0)
            planned = less if less > too_little else (too_little + too_much) / 2
        if too_much - too_little < 1:
            return None
    return None
