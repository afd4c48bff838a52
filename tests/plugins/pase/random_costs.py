"""Small random graphs with random tables, and what enumerating all strategies says of them."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from pipebench_pase.elimination import Costs
from pipebench_pase.space import IntArray


@st.composite
def graphs(draw: st.DrawFn, most_vertices: int = 6, most_configurations: int = 4) -> Costs:
    """Any undirected graph, connected or not, with whole costs, so that sums are exact."""
    count = draw(st.integers(1, most_vertices))
    sizes = draw(st.lists(st.integers(1, most_configurations), min_size=count, max_size=count))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    vertices = [rng.integers(0, 50, size).astype(np.float64) for size in sizes]
    pairs = {
        (u, v): rng.integers(0, 50, (sizes[u], sizes[v])).astype(np.float64)
        for u in range(count)
        for v in range(u + 1, count)
        if draw(st.booleans())
    }
    if draw(st.booleans()):
        # One table for all of a shape, as equal layers have: an elimination stands for its equals only.
        of_shape = {each.shape: each for each in (*vertices, *pairs.values())}
        vertices = [of_shape[each.shape] for each in vertices]
        pairs = {pair: of_shape[each.shape] for pair, each in pairs.items()}
    return Costs(vertices, pairs)


def least(costs: Costs, memory: list[IntArray] | None = None, limit: int = 0) -> float:
    """The least cost of all strategies, those alone that fit where memory is given; infinite where none does."""
    best = float("inf")
    for strategy in product(*(range(len(each)) for each in costs.vertices)):
        if memory and sum(int(each[n]) for each, n in zip(memory, strategy, strict=True)) > limit:
            continue
        best = min(best, costs.of(strategy))
    return best
