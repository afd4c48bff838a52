"""Where `layout` cuts: fast by the load of the busiest device, fitting as far as that can be told without a
schedule.
"""

from collections.abc import Iterator
from itertools import accumulate, pairwise

from pipebench.algorithms.level_cuts import (
    Bounds,
    Homes,
    equal_bounds,
    level_devices,
    loads_of,
    smallest_bottleneck,
)
from pipebench.domain.problem import Problem
from pipebench_baselines.chain_items import ItemCosts
from pipebench_baselines.shapes import Shape


def neighbours(bounds: Bounds) -> Iterator[Bounds]:
    """Each boundary moved by one either way, those of the last stages first; then runs of boundaries together,
    which moves an item between stages that are not next to each other. No stage is left empty.
    """
    inner = range(len(bounds) - 2, 0, -1)
    runs = [(boundary, boundary) for boundary in inner]
    runs += [(first, last) for last in inner for first in range(last - 1, 0, -1)]
    for first, last in runs:
        for step in (-1, 1):
            moved = tuple(bound + step if first <= k <= last else bound for k, bound in enumerate(bounds))
            if moved[first - 1] < moved[first] and moved[last] < moved[last + 1]:
                yield moved


def rough(problem: Problem, costs: ItemCosts, shape: Shape) -> float:
    """Nanoseconds of a mini-batch whose work is spread evenly, as far as its largest item lets it, with the
    bubble.
    """
    each = max(costs.total_ns / shape.pipeline, costs.longest_ns)
    rounds = problem.mini_batch // shape.micro_batch
    return each * (rounds + (shape.pipeline - 1) / shape.sharers) + shape.sharers * costs.every_update_ns


def cuts(problem: Problem, costs: ItemCosts, shape: Shape, items: int, limit: int) -> list[Bounds]:
    """Cuts whose busiest device is fast; empty where they cannot fit. Several stages a device: fit by estimate."""
    every = costs.every
    if shape.pipelines == 1 and (costs.held[-1] + shape.stages * every.held) / shape.pipeline > limit:
        return []
    start = equal_bounds(items, shape.stages)
    level = level_devices(costs.times_ns, shape.homes, start)
    if shape.sharers > 1:
        listed = dict.fromkeys((level, _late(level, shape)))
        return [bounds for bounds in listed if _may_fit(problem, costs, shape, bounds, limit)]
    micro_batches = problem.mini_batch // shape.micro_batch
    held, saved = costs.held, costs.saved
    once = every.held + every.while_live + every.workspace + costs.workspace

    def fits(stage: int, first: int, end: int) -> bool:
        live = min(shape.stages - stage, micro_batches)
        each = every.per_micro_batch + saved[end] - saved[first]
        return bool(once + held[end] - held[first] + live * each <= limit)

    exact = smallest_bottleneck(costs.times_ns, shape.stages, fits)
    likely = [bounds for bounds in (level,) if all(fits(s, a, b) for s, (a, b) in enumerate(pairwise(bounds)))]
    return list(dict.fromkeys((*likely, *exact)))


def _may_fit(problem: Problem, costs: ItemCosts, shape: Shape, bounds: Bounds, limit: int) -> bool:
    """Whether devices hold their weights and as many micro-batches as they warm up with, of their mean stage.

    That is known of interleaved 1F1B; of stages that stand otherwise the scheduler and the check tell it.
    """
    if shape.placement != "in-turn":
        return True
    total = problem.mini_batch // shape.micro_batch * shape.virtual
    for rank in range(shape.pipeline):
        runs = [(bounds[k], bounds[k + 1]) for k in range(rank, shape.stages, shape.pipeline)]
        live = min(total, 2 * (shape.pipeline - rank - 1) + (shape.virtual - 1) * shape.pipeline + 1)
        held = sum(costs.every.held + costs.held[end] - costs.held[first] for first, end in runs)
        saved = sum(costs.saved[end] - costs.saved[first] for first, end in runs) / shape.virtual
        if held + live * (costs.every.per_micro_batch + saved) > limit:
            return False
    return True


def _late(level: Bounds, shape: Shape) -> Bounds:
    """As `level`, with one item of the last stage in an earlier one of its device: the last one ends sooner."""
    counts = [end - first for first, end in pairwise(level)]
    last, homes = len(counts) - 1, shape.homes
    other = next((k for k in range(last - 1, -1, -1) if homes[k] == homes[last]), last)
    if counts[last] > 1:
        counts[last] -= 1
        counts[other] += 1
    return (0, *accumulate(counts))


def busiest_ns(costs: ItemCosts, bounds: Bounds, homes: Homes) -> int:
    """Nanoseconds of the busiest device for one micro-batch of each pipeline."""
    return max(loads_of([0, *accumulate(costs.times_ns)], bounds, homes))
