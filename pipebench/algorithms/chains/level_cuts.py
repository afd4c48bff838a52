"""Even cuts of a chain into stages: between which layers, how evenly loaded, with the least bottleneck."""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from pipebench.costs.model import CostModel
from pipebench.costs.shapes.transformer import EMBEDDING, FURTHER, HEAD, NORM, POSITIONS, STACKED
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan

Groups = tuple[tuple[int, ...], ...]


def layer_groups(graph: OperatorGraph) -> tuple[tuple[int, ...], ...]:
    """Operators (positions) of each layer, in an order that cuts between layers keep valid.

    Layers are those that the operators name; one without a layer joins the latest layer it reads from, or
    the earliest that reads from it. Where no operator names a layer, or data flow back to an earlier one,
    every operator is a layer of its own, in topological order.
    """
    single = tuple((operator,) for operator in graph.topological)
    layer = [operator.layer for operator in graph.operators]
    if all(index is None for index in layer):
        return single
    for operator in graph.topological:
        if layer[operator] is None:
            layer[operator] = max(
                (index for p in graph.predecessors[operator] if (index := layer[p]) is not None), default=None
            )
    for operator in reversed(graph.topological):
        if layer[operator] is None:
            layer[operator] = min(
                (index for s in graph.successors[operator] if (index := layer[s]) is not None), default=None
            )
    named: dict[int, list[int]] = {}
    for operator in graph.topological:
        index = layer[operator]
        if index is None:
            return single
        if any(
            (after := layer[successor]) is not None and after < index for successor in graph.successors[operator]
        ):
            return single
        named.setdefault(index, []).append(operator)
    return tuple(tuple(named[index]) for index in sorted(named))


def cut_items(graph: OperatorGraph) -> Groups:
    """What frameworks cut between: of a language model `language_items`, of others their layers."""
    return language_items(graph) or layer_groups(graph)


def language_items(graph: OperatorGraph) -> Groups | None:
    """A language model's embedding (with positions), each layer, the rest with the head; None for others."""
    kinds = [operator.kind for operator in graph.operators]
    order = graph.topological
    heads = tuple(op for op in order if kinds[op] in (FURTHER, NORM, HEAD))
    tables = tuple(op for op in order if kinds[op] in (EMBEDDING, POSITIONS))
    layers = [op for op in order if kinds[op] in STACKED]
    if not (layers and tables and heads) or len(heads) + len(tables) + len(layers) != len(kinds):
        return None
    return (tables, *((layer,) for layer in layers), heads)


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


Bounds = tuple[int, ...]
Homes = Sequence[tuple[int, ...]]
"""The devices (device sets) that run each stage: one, or several where pipelines run the same stages."""
Fits = Callable[[int, int, int], bool]
"""(stage, first item, end): whether the stage fits in memory. Fewer items never need more."""


def smallest_bottleneck(times: Sequence[int], stages: int, fits: Fits) -> list[Bounds]:
    """Cuts of the least largest stage time among those that fit: filled from the front, and from the back.

    Exact: bisection over the sums of runs of items, at each of which the positions that every stage can begin and
    end at are found. Every stage gets an item. Empty: none fits.
    """
    total = [0, *accumulate(times)]
    if stages > len(times):
        return []
    sums = sorted(
        {total[end] - total[first] for first in range(len(times)) for end in range(first + 1, len(total))}
    )
    low, high = 0, len(sums) - 1
    if _furthest(total, stages, fits, sums[high]) is None:
        return []
    while low < high:
        middle = (low + high) // 2
        if _furthest(total, stages, fits, sums[middle]) is None:
            low = middle + 1
        else:
            high = middle
    furthest = _furthest(total, stages, fits, sums[low])
    assert furthest is not None
    return list(dict.fromkeys((_bounds(furthest, len(times), max), _bounds(furthest, len(times), min))))


def level_devices(times: Sequence[int], homes: Homes, start: Bounds) -> Bounds:
    """Cuts of which the busiest device is as fast as moves make it. homes: the devices that run each stage.

    Moves one item from a stage of the busiest device to another stage, every boundary between them by one, as long
    as that lowers the largest load (ties: the sum of squares, then the fewest boundaries). A local optimum, exact
    for equal items.
    """
    total = [0, *accumulate(times)]
    bounds, stages = list(start), len(homes)
    loads = loads_of(total, bounds, homes)
    while True:
        value = max(loads), sum(load * load for load in loads)
        busiest = loads.index(value[0])
        best: tuple[tuple[int, int, int], list[int], list[int]] | None = None
        for source in range(stages):
            if busiest not in homes[source] or bounds[source + 1] - bounds[source] < 2:
                continue
            for target in range(stages):
                if busiest in homes[target]:
                    continue
                changed = _after_move(total, bounds, loads, source, target, homes)
                found = max(changed), sum(load * load for load in changed), abs(target - source)
                if found[:2] < value and (best is None or found < best[0]):
                    best = found, _shift_bounds(bounds, source, target), changed
        if best is None:
            return tuple(bounds)
        _, bounds, loads = best


def equal_bounds(items: int, stages: int) -> Bounds:
    """Stages whose numbers of items differ by at most one."""
    return tuple(stage * items // stages for stage in range(stages + 1))


def _furthest(total: Sequence[int], stages: int, fits: Fits, most: int) -> list[dict[int, int]] | None:
    """For each stage the positions where it can begin, each with the furthest that it can end; None: no cut.

    A stage that begins later never ends earlier (fewer items fit where more do), so one sweep a stage is enough.
    """
    items, begins = len(total) - 1, [0]
    found: list[dict[int, int]] = []
    for stage in range(stages):
        latest = items - (stages - stage - 1)
        reached: dict[int, int] = {}
        ends: set[int] = set()
        end = 0
        for first in begins:
            end = max(end, first)
            while end < latest and total[end + 1] - total[first] <= most and fits(stage, first, end + 1):
                end += 1
            if end > first:
                reached[first] = end
                ends.update(range(first + 1, end + 1))
        found.append(reached)
        begins = sorted(ends)
    return found if begins and begins[-1] == items else None


def _bounds(furthest: Sequence[dict[int, int]], items: int, pick: Callable[[Iterable[int]], int]) -> Bounds:
    """From the last stage to the first: of the positions where it can begin, the last (max) or the first (min)."""
    bounds = [items]
    for reached in reversed(furthest):
        end = bounds[-1]
        bounds.append(pick(first for first, reach in reached.items() if first < end <= reach))
    return tuple(reversed(bounds))


def loads_of(total: Sequence[int], bounds: Sequence[int], homes: Homes) -> list[int]:
    """What each device has to do. total: sums of the times of the first n items."""
    loads = [0] * (1 + max(max(devices) for devices in homes))
    for stage, devices in enumerate(homes):
        for device in devices:
            loads[device] += total[bounds[stage + 1]] - total[bounds[stage]]
    return loads


def _after_move(
    total: Sequence[int], bounds: Sequence[int], loads: list[int], source: int, target: int, homes: Homes
) -> list[int]:
    """The loads after one item less in `source` and one more in `target`: each boundary between hands one over."""
    made = loads.copy()

    def hand_over(item: int, giver: int, taker: int) -> None:
        for device in homes[giver]:
            made[device] -= item
        for device in homes[taker]:
            made[device] += item

    if source < target:
        for boundary in range(source + 1, target + 1):
            hand_over(total[bounds[boundary]] - total[bounds[boundary] - 1], boundary - 1, boundary)
    else:
        for boundary in range(target + 1, source + 1):
            hand_over(total[bounds[boundary] + 1] - total[bounds[boundary]], boundary, boundary - 1)
    return made


def _shift_bounds(bounds: Sequence[int], source: int, target: int) -> list[int]:
    made = list(bounds)
    step = -1 if source < target else 1
    for boundary in range(min(source, target) + 1, max(source, target) + 1):
        made[boundary] += step
    return made
