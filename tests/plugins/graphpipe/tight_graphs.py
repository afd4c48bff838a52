"""Random graphs on devices with little memory, on which planners part: series-parallel or not, light and heavy."""

import random

from msgspec.structs import replace

from pipebench.domain.problem import Problem
from tests.builders import cluster, dag_problem

SIZES = (1, 2, 4, 8, 16)
OVERHEAD_NS = 50_000
"""Of each pass of an operator, whatever its micro-batch."""


def tight_graph(seed: int) -> Problem:
    """10-60 operators of log-normal time on 4-16 devices of 0.2-1.2 GB; weights of up to 80 MB.

    Every other seed gives a series-parallel graph, the rest edges at random besides.
    """
    draw = random.Random(seed)
    count = draw.randint(10, 60)
    edges = _series_parallel(draw, count)
    if seed % 2:
        edges |= {tuple(sorted(draw.sample(range(count), 2))) for _ in range(count // 4)}
    times = [int(1e6 * draw.lognormvariate(0, 1)) for _ in range(count)]
    tensors: dict[int, list[int]] = {}
    for producer, consumer in sorted(edges):
        tensors.setdefault(producer, []).append(consumer)
    problem = dag_problem(
        times,
        [2 * each for each in times],
        [(producer, consumers, draw.randint(10**4, 10**6)) for producer, consumers in tensors.items()],
        cluster(draw.choice((4, 8, 16)), memory=draw.randint(200, 1200) * 10**6, bandwidth=10e9),
        weights=[draw.randint(0, 80) * 10**6 for _ in range(count)],
        saved=[draw.randint(10**5, 10**7) for _ in range(count)],
        mini_batch=32,
    )
    return _with_overhead(problem)


def _series_parallel(draw: random.Random, count: int) -> set[tuple[int, ...]]:
    """Edges of a graph of `count` operators, in order: one edge grown by series and parallel steps, ends kept."""
    order = [0, 1]
    edges = {(0, 1)}
    while len(order) < count:
        fresh = len(order)
        before, after = draw.choice(sorted(edges))
        edges |= {(before, fresh), (fresh, after)}
        if draw.random() < 0.6:
            edges.discard((before, after))
        order.insert(order.index(after), fresh)
    place = {name: at for at, name in enumerate(order)}
    return {(place[one], place[other]) for one, other in edges}


def _with_overhead(problem: Problem) -> Problem:
    """Times at each profiled size: proportional to it, and the overhead of a pass."""
    costs = problem.profile.costs[0]
    operators = tuple(
        replace(
            each,
            forward_s=tuple(OVERHEAD_NS / 1e9 + each.forward_s[0] * size for size in SIZES),
            backward_s=tuple(OVERHEAD_NS / 1e9 + each.backward_s[0] * size for size in SIZES),
        )
        for each in costs.operators
    )
    profile = replace(problem.profile, costs=(replace(costs, micro_batches=SIZES, operators=operators),))
    return replace(problem, profile=profile)
