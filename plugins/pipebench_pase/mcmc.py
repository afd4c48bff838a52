"""The planner `mcmc`: a random walk over the configurations that PaSE searches, from the expert strategy."""

from collections.abc import Mapping

from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pase.plugin import MCMCOptions
from pipebench_pase.pricing import priced
from pipebench_pase.space import Space
from pipebench_pase.strategies import expert_splits, strategy_of
from pipebench_pase.strategy_plan import refuse_unsupported
from pipebench_pase.strategy_result import strategy_result
from pipebench_pase.walk import walk


def plan(problem: Problem, context: Context) -> PlanResult:
    """The best strategy on the walk.

    Raises UnsupportedProblem for regimes, pins and clusters that one stage of split operators cannot express.
    """
    options = context.options
    assert isinstance(options, MCMCOptions)
    refuse_unsupported("mcmc", problem)
    prices = priced(problem, options)
    graph, devices = problem.profile.graph, problem.cluster.size
    tables = prices.pricing.searched(devices, prices.cutoff)
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


def _nearest(space: Space, split: Mapping[str, int]) -> int:
    """The configuration that cuts so, or else the one of the most parts that cuts no dim finer."""
    wanted = [split.get(dim, 1) for dim in space.sizes]
    below = (space.configurations <= wanted).all(axis=1)
    parts = space.configurations.prod(axis=1) * below
    return int(parts.argmax())
