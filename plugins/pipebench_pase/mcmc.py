"""The planner `mcmc`: a random walk over the configurations that PaSE searches, from the expert strategy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pase.elimination import Costs
from pipebench_pase.expert import expert_splits, strategy_of
from pipebench_pase.plugin import MCMCOptions
from pipebench_pase.space import ConfigurationSpace, FloatArray
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


def walk(
    costs: Costs,
    start: Sequence[int],
    iterations: int,
    beta: float,
    seed: int,
    out_of_time: Callable[[], bool] = lambda: False,
) -> WalkResult:
    """FlexFlow's search (Jia et al. 2019, section 6.2): Metropolis-Hastings with a symmetric proposal.

    A worse strategy is taken with probability exp(-beta x loss / cost of the start). Ends after `iterations`, or
    when half of so many have not improved the best.
    """
    rng = np.random.default_rng(seed)
    near: list[list[tuple[int, FloatArray]]] = [[] for _ in costs.vertices]
    for (u, v), both in costs.pairs.items():
        near[u].append((v, both))
        near[v].append((u, both.T))
    at = list(start)
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
        own = costs.vertices[vertex]
        change = own[new] - own[old]
        for other, both in near[vertex]:
            column = at[other]
            change += both[new, column] - both[old, column]
        if change <= 0 or chances[slot] < exp(-scale * change):
            accepted += 1
            at[vertex] = new
            cost += change
            if cost < best_cost * (1 - 1e-12):
                best, best_cost, found = tuple(at), cost, step
        if 2 * (step - found) >= iterations:
            return WalkResult(best, costs.of(best), step, accepted, "half the search without improvement")
    return WalkResult(best, costs.of(best), iterations, accepted, "iterations")


def plan(problem: Problem, context: Context) -> PlanResult:
    """The best strategy on the walk.

    Raises UnsupportedProblem for regimes, pins and clusters that one stage of split operators cannot express.
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
    walked = walk(tables.costs, start, options.iterations, options.beta, context.seed, context.out_of_time)
    context.count("iterations", walked.iterations)
    context.count("accepted", walked.accepted)
    moved = sum(
        space.split(at) != splits[op.name]
        for op, space, at in zip(graph.operators, tables.spaces, start, strict=True)
    )
    notices = (
        (f"start: {name}, {moved} operators on fewer parts, as the cutoff asks",) if moved else (f"start: {name}",)
    )
    return strategy_result(
        problem,
        prices,
        tables.splits(walked.strategy),
        walked.cost,
        options.describe,
        "limit" if walked.stopped == "limit" else "heuristic",
        (*notices, f"ended by: {walked.stopped}, after {walked.iterations} iterations"),
    )


def _nearest(space: ConfigurationSpace, split: Mapping[str, int]) -> int:
    """The configuration that cuts so, or else the one of the most parts that cuts no dim finer."""
    wanted = [split.get(dim, 1) for dim in space.sizes]
    below = (space.configurations <= wanted).all(axis=1)
    parts = space.configurations.prod(axis=1) * below
    return int(parts.argmax())
