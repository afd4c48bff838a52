"""A heaviest matching between two numbered sets."""

from collections.abc import Mapping

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
