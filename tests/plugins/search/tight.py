"""Random graphs on devices with hardly more memory than the least."""

import random

from msgspec.structs import replace

from pipebench.bounds import memory_bound
from pipebench.domain.cluster import LinkMode
from pipebench.domain.problem import Problem, RegimeMode
from tests.builders import cluster, dag_problem, nodes

MICRO_BATCHES = (1, 2, 4, 8)


def tight(number: int, mode: RegimeMode, share: float = 1.3, operators: int = 10, devices: int = 3) -> Problem:
    """Operators on devices, each with `share` times the least memory that any plan needs.

    Half of an operator's time does not depend on the micro-batch, so that small ones cost time.
    """
    drawn = random.Random(number)
    work = [drawn.randint(100_000, 400_000) for _ in range(operators)]
    readers = [
        {i + 1} | {j for j in range(i + 2, operators) if drawn.random() < 0.2} for i in range(operators - 1)
    ]
    free = dag_problem(
        work,
        [2 * ns for ns in work],
        [(i, tuple(sorted(read)), 20_000) for i, read in enumerate(readers)],
        cluster(devices, bandwidth=12e9),
        weights=[drawn.randint(10**4, 10**6) for _ in work],
        saved=[drawn.randint(10**4, 10**6) for _ in work],
        mode=mode,
        mini_batch=8,
        micro_batches=MICRO_BATCHES,
    )
    (costs,) = free.profile.costs
    slowed = tuple(
        replace(
            operator,
            forward_s=tuple(ns * (1 + size) / 2e9 for size in MICRO_BATCHES),
            backward_s=tuple(ns * (1 + size) / 1e9 for size in MICRO_BATCHES),
        )
        for operator, ns in zip(costs.operators, work, strict=True)
    )
    free = replace(free, profile=replace(free.profile, costs=(replace(costs, operators=slowed),)))
    return replace(free, cluster=cluster(devices, memory=int(share * memory_bound(free).value), bandwidth=12e9))


def on_nodes(problem: Problem, link_mode: LinkMode, between: float = 1e9, shared: float = 0.7e9) -> Problem:
    """The problem on nodes of two devices, whose ways out and in take as long as some operators."""
    (kind,) = problem.cluster.types
    on = nodes(
        problem.cluster.size,
        within=12e9,
        between=between,
        shared=shared,
        memory=kind.memory_bytes,
        link_mode=link_mode,
    )
    return replace(problem, cluster=on)
