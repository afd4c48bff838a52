"""Small random problems on series-parallel and other graphs."""

import random

import msgspec

from pipebench.domain.problem import Pins, Problem
from tests.builders import cluster, dag_problem

Edge = tuple[int, int]


def random_series_parallel(rng: random.Random, operators: int) -> list[Edge]:
    """Edges of a series-parallel graph on operators 0, 1, … in topological order, with some skips."""
    edges: set[Edge] = set()

    def build(first: int, count: int, depth: int) -> tuple[list[int], list[int]]:
        """Operators first … first + count - 1; their sources and sinks."""
        if count == 1:
            return [first], [first]
        if depth and rng.random() < 0.6:
            split = rng.randint(1, count - 1)
            one, other = build(first, split, depth - 1), build(first + split, count - split, depth - 1)
            return one[0] + other[0], one[1] + other[1]
        split = rng.randint(1, count - 1)
        one, other = build(first, split, depth), build(first + split, count - split, depth)
        edges.update((sink, source) for sink in one[1] for source in other[0])
        if rng.random() < 0.3:
            edges.add((rng.choice(one[0]), rng.choice(other[1])))
        return one[0], other[1]

    build(0, operators, 2)
    return sorted(edges)


def problem_on(
    rng: random.Random, operators: int, edges: list[Edge], devices: int, memory: int, *, alike: bool = False
) -> Problem:
    """Random costs on a graph; alike: one set of costs for all operators. Some weights are shared."""

    def draw(low: int, high: int) -> list[int]:
        return (
            [rng.randint(low, high)] * operators if alike else [rng.randint(low, high) for _ in range(operators)]
        )

    readers: dict[int, list[int]] = {}
    for before, after in edges:
        readers.setdefault(before, []).append(after)
    size = rng.randint(1, 40)
    problem = dag_problem(
        draw(5, 50),
        draw(5, 100),
        [(before, after, size if alike else rng.randint(0, 40)) for before, after in readers.items()],
        cluster(devices, memory, bandwidth=2e9, latency_s=1e-9),
        weights=draw(0, 30),
        saved=draw(0, 20),
        mini_batch=8,
        micro_batches=(1, 2, 4, 8),
    )
    return problem if alike else _share_a_weight(rng, _scaled(problem))


def pinned(problem: Problem, **pins: object) -> Problem:
    """The problem with pins."""
    return msgspec.structs.replace(problem, pins=Pins(**pins))  # type: ignore[arg-type]


def with_memory(problem: Problem, memory: int) -> Problem:
    """The problem on devices of that memory."""
    kinds = tuple(msgspec.structs.replace(kind, memory_bytes=memory) for kind in problem.cluster.types)
    return msgspec.structs.replace(problem, cluster=msgspec.structs.replace(problem.cluster, types=kinds))


def with_devices(problem: Problem, devices: int) -> Problem:
    """The problem on more or fewer devices behind the same link."""
    made = cluster(devices, problem.cluster.memory_bytes, bandwidth=2e9, latency_s=1e-9)
    return msgspec.structs.replace(problem, cluster=made)


def _scaled(problem: Problem) -> Problem:
    """Operators grow with the micro-batch, less than in proportion."""
    device = problem.profile.costs[0]
    operators = tuple(
        msgspec.structs.replace(
            costs,
            forward_s=tuple(
                time * (1 + size / 2) for time, size in zip(costs.forward_s, (1, 2, 4, 8), strict=True)
            ),
            backward_s=tuple(time * (1 + size) for time, size in zip(costs.backward_s, (1, 2, 4, 8), strict=True)),
            workspace_bytes=number % 3 * 5,
        )
        for number, costs in enumerate(device.operators)
    )
    costs = msgspec.structs.replace(device, operators=operators)
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, costs=(costs,)))


def _share_a_weight(rng: random.Random, problem: Problem) -> Problem:
    """Two operators read one weight, half of the time."""
    graph = problem.profile.graph
    if rng.random() < 0.5 or len(graph.operators) < 2 or not graph.parameters:
        return problem
    shared = rng.choice(graph.parameters).name
    user = rng.randrange(len(graph.operators))
    operators = list(graph.operators)
    used = operators[user].parameters
    operators[user] = msgspec.structs.replace(operators[user], parameters=tuple(dict.fromkeys((*used, shared))))
    graph = msgspec.structs.replace(graph, operators=tuple(operators))
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, graph=graph))
