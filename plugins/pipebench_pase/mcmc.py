"""The planner `mcmc`: a random walk over the configurations that PaSE searches, from the expert strategy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from pipebench.algorithms.planning import memory_limits
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pase.elimination import Costs
from pipebench_pase.expert import expert_splits, strategy_of
from pipebench_pase.memory_limit import besides_bytes, memory_tables, too_little_memory
from pipebench_pase.plugin import MCMCOptions
from pipebench_pase.space import ConfigurationSpace, FloatArray, IntArray
from pipebench_pase.strategy_plan import refuse_unsupported, strategy_result
from pipebench_pase.tables import price_problem

BATCH = 1 << 12


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The best strategy of a walk. stopped: why it ended."""

    strategy: tuple[int, ...]
    cost: float
    iterations: int
    accepted: int
    stopped: str


@dataclass(frozen=True, slots=True)
class MemoryBound:
    """each: bytes of each configuration of each operator. limit_bytes: of all operators together."""

    each: Sequence[IntArray]
    limit_bytes: int

    def held(self, strategy: Sequence[int]) -> int:
        """Bytes of a strategy."""
        return sum(int(own[number]) for own, number in zip(self.each, strategy, strict=True))


def led_down(costs: Costs, start: Sequence[int], bound: MemoryBound) -> list[int]:
    """The start, changed one operator at a time until it fits; each change costs the least for a byte it saves.

    It fits where the least bytes of all operators do.
    """
    near = _neighbours(costs)
    at = list(start)
    held = bound.held(at)
    while held > bound.limit_bytes:
        best: tuple[float, int, int] | None = None
        for vertex, (own, memory) in enumerate(zip(costs.vertices, bound.each, strict=True)):
            saved = np.minimum(memory[at[vertex]] - memory, held - bound.limit_bytes)
            if saved.max() <= 0:
                continue
            total = own + sum((both[:, at[other]] for other, both in near[vertex]), np.zeros(len(own)))
            price = np.where(saved > 0, (total - total[at[vertex]]) / np.maximum(saved, 1), np.inf)
            new = int(price.argmin())
            if best is None or price[new] < best[0]:
                best = float(price[new]), vertex, new
        if best is None:
            break
        _, vertex, new = best
        held += int(bound.each[vertex][new] - bound.each[vertex][at[vertex]])
        at[vertex] = new
    return at


def memory_bound(problem: Problem, samples: int, spaces: Sequence[ConfigurationSpace]) -> MemoryBound:
    """What operators may hold: memory less the reserve, or all of it where nothing fits into less.

    Raises InfeasibleProblem where nothing fits at all.
    """
    memory = memory_tables(problem, samples, spaces)
    besides = besides_bytes(problem)
    least = sum(int(each.min()) for each in memory)
    for limit_bytes in memory_limits(problem):
        if least <= limit_bytes - besides:
            return MemoryBound(memory, limit_bytes - besides)
    raise too_little_memory("mcmc", problem, samples, memory)


def _neighbours(costs: Costs) -> list[list[tuple[int, FloatArray]]]:
    """For each vertex the others that it shares a cost with, and that cost, [its own, the other's]."""
    near: list[list[tuple[int, FloatArray]]] = [[] for _ in costs.vertices]
    for (u, v), both in costs.pairs.items():
        near[u].append((v, both))
        near[v].append((u, both.T))
    return near


def walk(
    costs: Costs,
    start: Sequence[int],
    iterations: int,
    beta: float,
    seed: int,
    out_of_time: Callable[[], bool] = lambda: False,
    bound: MemoryBound | None = None,
) -> WalkResult:
    """FlexFlow's search (Jia et al. 2019, section 6.2): Metropolis-Hastings with a symmetric proposal.

    A worse strategy is taken with probability exp(-beta x loss / cost of the start). Ends after `iterations`, or
    when half of so many have not improved the best. bound: a proposal that leaves it is not taken; the start
    keeps to it.
    """
    rng = np.random.default_rng(seed)
    near = _neighbours(costs)
    at = list(start)
    memory = [own.tolist() for own in bound.each] if bound else []
    room = bound.limit_bytes - bound.held(at) if bound else 0
    cost = best_cost = costs.of(at)
    scale = beta / cost if cost else 0.0
    best, found, accepted = tuple(at), 0, 0
    sizes = np.array([len(each) for each in costs.vertices])
    for step in range(1, iterations + 1):
        if step % BATCH == 1:
            if out_of_time():
                return WalkResult(best, best_cost, step - 1, accepted, "limit")
            vertices = rng.integers(len(sizes), size=BATCH)
            proposals = (rng.random(BATCH) * sizes[vertices]).astype(np.int64).tolist()
            chances = rng.random(BATCH).tolist()
            vertices = vertices.tolist()
        slot = (step - 1) % BATCH
        vertex, new = vertices[slot], proposals[slot]
        old = at[vertex]
        more = memory[vertex][new] - memory[vertex][old] if memory else 0
        if more <= room:
            own = costs.vertices[vertex]
            change = own[new] - own[old]
            for other, both in near[vertex]:
                column = at[other]
                change += both[new, column] - both[old, column]
            if change <= 0 or chances[slot] < exp(-scale * change):
                accepted += 1
                at[vertex] = new
                room -= more
                cost += change
                if cost < best_cost * (1 - 1e-12):
                    best, best_cost, found = tuple(at), cost, step
        if 2 * (step - found) >= iterations:
            break
    stopped = "half the search without improvement" if 2 * (step - found) >= iterations else "iterations"
    return WalkResult(best, costs.of(best), step, accepted, stopped)


def plan(problem: Problem, context: Context) -> PlanResult:
    """The best strategy on the walk.

    Raises UnsupportedProblem for regimes, pins and clusters that one stage of split operators cannot express;
    with memory=suite InfeasibleProblem when no strategy fits.
    """
    options = context.options
    assert isinstance(options, MCMCOptions)
    refuse_unsupported("mcmc", problem)
    prices = price_problem(problem, options)
    graph, devices = problem.profile.graph, problem.cluster.size
    tables = prices.pricing.search_tables(devices, prices.cutoff)
    name = strategy_of(graph) if options.start == "auto" else options.start
    splits = expert_splits(graph, name, prices.samples, devices)
    start = [_nearest(space, splits[op.name]) for op, space in zip(graph.operators, tables.spaces, strict=True)]
    bound = memory_bound(problem, prices.samples, tables.spaces) if options.memory == "suite" else None
    first = led_down(tables.costs, start, bound) if bound else start
    walked = walk(tables.costs, first, options.iterations, options.beta, context.seed, context.out_of_time, bound)
    context.count("iterations", walked.iterations)
    context.count("accepted", walked.accepted)
    moved = sum(
        space.split(at) != splits[op.name]
        for op, space, at in zip(graph.operators, tables.spaces, start, strict=True)
    )
    notices: tuple[str, ...] = (
        (f"start: {name}, some operators on fewer parts, as the cutoff asks",) if moved else (f"start: {name}",)
    )
    if first != start:
        notices = (*notices, "start: some operators split otherwise, so that it fits in memory")
    return strategy_result(
        problem,
        prices,
        tables.splits(walked.strategy),
        walked.cost,
        options.describe,
        "limit" if walked.stopped == "limit" else "heuristic",
        (*notices, f"ended by: {walked.stopped}"),
    )


def _nearest(space: ConfigurationSpace, split: Mapping[str, int]) -> int:
    """The configuration that cuts so, or else the one of the most parts that cuts no dim finer."""
    wanted = [split.get(dim, 1) for dim in space.sizes]
    below = (space.configurations <= wanted).all(axis=1)
    parts = space.configurations.prod(axis=1) * below
    return int(parts.argmax())
