"""The same degrees with other cuts: the uniform split, and candidates beside a plan."""

from itertools import pairwise

from msgspec.structs import replace

from pipebench.algorithms.layer_groups import Groups, cut_items, language_items
from pipebench.algorithms.level_cuts import Bounds, equal_bounds
from pipebench.domain.plan import Plan
from pipebench.formats.frameworks.arrangement import Arrangement


def uniform_bounds(made: Arrangement) -> Bounds | None:
    """Equal numbers of layers on every stage, embedding on the first and head on the last; None: too few layers.

    What frameworks do when nothing is said; where stages do not divide the layers, numbers differ by one.
    """
    items = cut_items(made.graph)
    language = language_items(made.graph) is not None
    layers = len(items) - 2 if language else len(items)
    if layers < len(made.stages):
        return None
    inner = equal_bounds(layers, len(made.stages))
    if not language:
        return inner
    return (0, *(bound + 1 for bound in inner[1:-1]), len(items))


def bounds_of(made: Arrangement) -> Bounds | None:
    """The plan's own cuts between items; None where it cuts elsewhere."""
    items = cut_items(made.graph)
    ends = {0: 0}
    count = 0
    for position, group in enumerate(items):
        count += len(group)
        ends[count] = position + 1
    total, bounds = 0, [0]
    for stage in made.stages:
        total += len(stage)
        if total not in ends:
            return None
        bounds.append(ends[total])
    return tuple(bounds)


def recut(made: Arrangement, bounds: Bounds) -> Plan:
    """The plan with these cuts, every operator run as before, stage k where stage k was."""
    items: Groups = cut_items(made.graph)
    plan, operators = made.plan, made.graph.operators
    chosen = {
        name: identifier
        for stage in plan.stages
        for name, identifier in zip(stage.operators, stage.choice, strict=False)
    }
    order = {operators[contents[0]].name: k for k, contents in enumerate(made.stages)}
    position_of = sorted(
        range(len(plan.stages)), key=lambda p: min(order.get(n, len(order)) for n in plan.stages[p].operators)
    )
    rounds = made.problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    count = len(made.stages)
    stages = []
    for k, (first, end) in enumerate(pairwise(bounds)):
        old = plan.stages[position_of[k]]
        names = tuple(operators[op].name for group in items[first:end] for op in group)
        choice = tuple(chosen.get(name, "") for name in names)
        live = min(count - k, rounds) if made.virtual == 1 else 0
        stages.append(
            replace(
                old,
                operators=names,
                choice=choice if any(choice) else (),
                in_flight=live * old.micro_batch,
            )
        )
    edges = tuple(pairwise(range(count))) if plan.order_edges else ()
    return replace(plan, stages=tuple(stages), order_edges=edges)
