"""The planner `pase`: the best split of every operator."""

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pase.elimination import find_best
from pipebench_pase.ordering import Sequenced, sequenced
from pipebench_pase.plugin import PaSEOptions
from pipebench_pase.pricing import priced
from pipebench_pase.strategy_plan import refuse_unsupported
from pipebench_pase.strategy_result import strategy_result

ENTRY_BYTES = 8
GIGA = 1e9


def plan(problem: Problem, context: Context) -> PlanResult:
    """The strategy of the least cost (PaSE, equation 1), as one stage on all devices.

    Raises UnsupportedProblem for regimes, pins and clusters that it cannot express, and for orderings whose
    tables would be larger than table_gb.
    """
    options = context.options
    assert isinstance(options, PaSEOptions)
    refuse_unsupported("pase", problem)
    prices = priced(problem, options)
    tables = prices.pricing.searched(problem.cluster.size, prices.cutoff)
    order = sequenced(tables.costs.adjacency, options.ordering)
    sizes = [len(space.configurations) for space in tables.spaces]
    _count(context, order, sizes, len(tables.costs.pairs))
    _refuse_large(order, sizes, options)
    best = find_best(tables.costs, order, context.check_deadline)
    context.count("eliminations_reused", best.reused)
    graph = problem.profile.graph
    splits = {
        operator.name: space.split(number)
        for operator, space, number in zip(graph.operators, tables.spaces, best.strategy, strict=True)
    }
    return strategy_result(problem, prices, splits, best.cost, "optimal")


def _count(context: Context, order: Sequenced, sizes: list[int], pairs: int) -> None:
    combinations = order.table_sizes(sizes)
    context.count("vertices", len(sizes))
    context.count("edges", pairs)
    context.count("configurations", sum(sizes))
    context.count("most_configurations", max(sizes))
    context.count("largest_dependent_set", order.largest_dependent_set)
    context.count("largest_table", max(combinations))
    context.count("combinations", sum(combinations))


def _refuse_large(order: Sequenced, sizes: list[int], options: PaSEOptions) -> None:
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
