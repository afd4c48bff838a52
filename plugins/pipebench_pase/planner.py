"""The planner `pase`: the best split of every operator."""

from collections.abc import Mapping

from pipebench.algorithms.fitting import excess_bytes
from pipebench.algorithms.planning import memory_limits
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench.hooks.context import Context
from pipebench_pase.elimination import find_best
from pipebench_pase.memory_limit import (
    besides_bytes,
    find_best_within,
    has_shared_weights,
    memory_tables,
    too_little_memory,
)
from pipebench_pase.ordering import EliminationOrder, elimination_order
from pipebench_pase.plugin import PaSEOptions
from pipebench_pase.strategy_plan import refuse_unsupported, strategy_plan, strategy_result
from pipebench_pase.tables import PricedProblem, StrategyTables, price_problem

ENTRY_BYTES = 8
GIGA = 1e9


def plan(problem: Problem, context: Context) -> PlanResult:
    """The strategy of the least cost (PaSE, equation 1), as one stage on all devices.

    Raises UnsupportedProblem for regimes, pins and clusters that it cannot express, and for orderings whose
    tables would be larger than table_gb; with memory=suite InfeasibleProblem when no strategy fits.
    """
    options = context.options
    assert isinstance(options, PaSEOptions)
    refuse_unsupported("pase", problem)
    prices = price_problem(problem, options)
    tables = prices.pricing.search_tables(problem.cluster.size, prices.cutoff)
    order = elimination_order(tables.costs.adjacency, options.ordering)
    sizes = [len(space.configurations) for space in tables.spaces]
    _count(context, order, sizes, len(tables.costs.pairs))
    _refuse_large(order, sizes, options)
    best = find_best(tables.costs, order, context.check_deadline)
    context.count("eliminations_reused", best.reused)
    splits = tables.splits(best.strategy)
    if options.memory == "suite" and not _fits(problem, prices, splits):
        return _within(problem, prices, tables, order, context)
    return strategy_result(problem, prices, splits, best.cost, options.describe, "optimal")


def _fits(problem: Problem, prices: PricedProblem, splits: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether a strategy fits in memory less the reserve."""
    return excess_bytes(problem, strategy_plan(problem, prices.samples, splits), memory_limits(problem)[:1]) <= 0


def _within(
    problem: Problem, prices: PricedProblem, tables: StrategyTables, order: EliminationOrder, context: Context
) -> PlanResult:
    """The best strategy that fits: in memory less the reserve, else in all of it.

    Weights of several operators count for each. Where there are any, better strategies may fit: heuristic.
    """
    options = context.options
    assert isinstance(options, PaSEOptions)
    memory = memory_tables(problem, prices.samples, tables.spaces)
    besides = besides_bytes(problem)
    for limit_bytes in memory_limits(problem):
        usable = limit_bytes - besides
        found = find_best_within(tables.costs, memory, usable, order, options.nodes, context.check_deadline)
        context.count("eliminations", found.solved)
        if found.strategy is not None:
            ended: Termination = "optimal" if found.proven else "limit"
            said: tuple[str, ...] = ()
            if not found.proven:
                said = (f"memory: no strategy that fits costs less than {found.bound:.6g}",)
            elif has_shared_weights(problem):
                ended, said = "heuristic", ("memory: weights that several operators share count for each",)
            splits = tables.splits(found.strategy)
            return strategy_result(problem, prices, splits, found.cost, options.describe, ended, said)
        if not found.proven:
            raise InfeasibleProblem(
                f"pase found no strategy that fits in {options.nodes} eliminations", "raise nodes"
            )
    raise too_little_memory("pase", problem, prices.samples, memory)


def _count(context: Context, order: EliminationOrder, sizes: list[int], pairs: int) -> None:
    combinations = order.table_sizes(sizes)
    context.count("vertices", len(sizes))
    context.count("edges", pairs)
    context.count("configurations", sum(sizes))
    context.count("most_configurations", max(sizes))
    context.count("largest_dependent_set", order.largest_dependent_set)
    context.count("largest_table", max(combinations))
    context.count("combinations", sum(combinations))


def _refuse_large(order: EliminationOrder, sizes: list[int], options: PaSEOptions) -> None:
    """Tables are kept over the dependent set: 8 bytes an entry, and 4 for the choice."""
    largest = max(
        total // sizes[vertex] for vertex, total in zip(order.order, order.table_sizes(sizes), strict=True)
    )
    if largest * ENTRY_BYTES > options.table_gb * GIGA:
        raise UnsupportedProblem(
            f"ordering={options.ordering} has dependent sets of up to {order.largest_dependent_set} operators: "
            f"one table would hold {largest:.3g} entries, {largest * ENTRY_BYTES / GIGA:.3g} GB, "
            f"more than table_gb={options.table_gb:g}",
            "use ordering=generate-seq, or a larger table_gb",
        )
