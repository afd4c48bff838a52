"""Which stage of one plan is which stage of the other: a heaviest matching of their operators."""

from collections.abc import Mapping

from pipebench.domain.plan import Plan
from pipebench.domain.value import digest

Pair = tuple[int, int]


def heaviest_matching(weights: Mapping[Pair, int]) -> dict[int, int]:
    """Left to right, each used at most once, with the largest sum of weights; only pairs named are matched.

    Weights are whole and above zero. Exact: the blossom algorithm of networkx, in integers. (Its bipartite
    matchings of least weight need scipy.)
    """
    import networkx  # only the comparison of plans needs it

    graph = networkx.Graph()
    # Numbers as nodes: the order in which they are visited, and so the choice among equals, never changes.
    graph.add_weighted_edges_from((left, ~right, weight) for (left, right), weight in sorted(weights.items()))
    pairs = networkx.max_weight_matching(graph)
    return dict(sorted((max(pair), ~min(pair)) for pair in pairs))


def match_stages(before: Plan, after: Plan) -> dict[int, int]:
    """Stage of `before` to stage of `after`: as many operators as possible stay where they are.

    Of matchings that keep equally many, one in which most devices stay, and of those one in which positions
    move least. Stages without a common operator are never matched. Read backwards it is the matching of
    (after, before).
    """
    # Equally good matchings may remain; which of the two plans goes first must not choose between them.
    if digest(before) > digest(after):
        return {left: right for right, left in match_stages(after, before).items()}
    homes: dict[str, list[int]] = {}
    for position, stage in enumerate(after.stages):
        for name in stage.operators:
            homes.setdefault(name, []).append(position)
    common: dict[tuple[int, int], int] = {}
    for position, stage in enumerate(before.stages):
        for name in stage.operators:
            for home in homes.get(name, ()):
                common[position, home] = common.get((position, home), 0) + 1
    most = max(len(before.stages), len(after.stages))
    devices = max(len(stage.devices) for stage in (*before.stages, *after.stages))
    device_unit = most * most + 1
    operator_unit = device_unit * (most * devices + 1)
    return heaviest_matching(
        {
            (left, right): operators * operator_unit
            + len(set(before.stages[left].devices) & set(after.stages[right].devices)) * device_unit
            + most
            - abs(left - right)
            for (left, right), operators in common.items()
        }
    )
