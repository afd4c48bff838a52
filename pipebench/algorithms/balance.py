"""How evenly a plan's stages are loaded."""

from collections.abc import Sequence

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan

BALANCE = "busiest_over_mean_permille"
"""The counter under which planners that aim at balance report it."""


def balance_permille(model: CostModel, plan: Plan) -> int:
    """1000 times the longest forward and backward of a micro-batch at a stage over their mean, rounded."""
    periods = [model.stage_times(stage, plan).period for stage in plan.stages]
    total = sum(periods)
    return round(1000 * max(periods) * len(periods) / total) if total else 1000


def balanced_cuts(times: Sequence[int], parts: int) -> tuple[int, ...]:
    """parts + 1 bounds of consecutive parts of `times`, none empty; the largest sum of a part is least possible.

    By bisection on that sum; each part takes as much as it can. Needs 1 <= parts <= len(times).
    """
    low, high = max(times), sum(times)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fill(times, parts, middle) is not None else (middle + 1, high)
    found = _fill(times, parts, low)
    assert found is not None
    return found


def _fill(times: Sequence[int], parts: int, most: int) -> tuple[int, ...] | None:
    """Parts of at most `most` each; None when more than `parts` are needed."""
    bounds, load = [0], 0
    for position, time in enumerate(times):
        left = len(times) - position
        full = load + time > most or left == parts - len(bounds)
        if full and position > bounds[-1]:
            bounds.append(position)
            load = 0
        load += time
    return (*bounds, len(times)) if len(bounds) <= parts else None
