"""The planner `pase`: the best split of every operator."""

from pipebench.algorithms.planning import memory_limits
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench.hooks.context import Context
from pipebench_pase.elimination import BestStrategy, find_best
from pipebench_pase.memory_limit import every_stage, find_best_within, memory_tables, workspace_bytes
from pipebench_pase.ordering import EliminationOrder, elimination_order
from pipebench_pase.plugin import PaSEOptions
from pipebench_pase.strategy_plan import refuse_unsupported, strategy_result
from pipebench_pase.tables import PricedProblem, StrategyTables, price_problem

ENTRY_BYTES = 8
GIGA = 1e9


def plan(problem: Problem, context: Context) -> PlanResult:
    """The strategy of the least cost (PaSE, equation 1), as one stage on all devices.

    Raises UnsupportedProblem for regimes, pins and clusters that it cannot express, and for orderings whose
    tables would be larger than table_gb; with memory=limit InfeasibleProblem when no strategy fits.
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
    if options.memory == "limit":
        return _within(problem, prices, tables, order, context)
    best = find_best(tables.costs, order, context.check_deadline)
    context.count("eliminations_reused", best.reused)
    return strategy_result(problem, prices, tables.splits(best.strategy), best.cost, options.describe, "optimal")


def _within(
    problem: Problem, prices: PricedProblem, tables: StrategyTables, order: EliminationOrder, context: Context
) -> PlanResult:
    """The best strategy that fits: in memory less the reserve, else in all of it."""
    options = context.options
    assert isinstance(options, PaSEOptions)
    memory = memory_tables(problem, prices.samples, tables.spaces)
    besides = workspace_bytes(problem) + every_stage(problem).peak(1)
    for limit_bytes in memory_limits(problem):
        usable = limit_bytes - besides
        found = find_best_within(tables.costs, memory, usable, order, options.nodes, context.check_deadline)
        context.count("eliminations", found.solved)
        if found.strategy is not None:
            best = BestStrategy(found.cost, found.strategy)
            splits = tables.splits(best.strategy)
            ended: Termination = "optimal" if found.proven else "limit"
            said = (
                () if found.proven else (f"memory limit: no strategy that fits costs less than {found.bound:.6g}",)
            )
            return strategy_result(problem, prices, splits, best.cost, options.describe, ended, said)
        if not found.proven:
            raise InfeasibleProblem(
                f"pase found no strategy that fits in {options.nodes} eliminations", "raise nodes"
            )
    least = sum(int(each.min()) for each in memory) + besides
    raise InfeasibleProblem(
        f"pase needs {least} bytes on each device for {prices.samples} samples at once, devices have "
        f"{problem.cluster.memory_bytes}",
        "pin a smaller micro-batch, or use more devices",
    )


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
