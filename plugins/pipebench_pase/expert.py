"""The planner `expert`: a strategy that people designed for such graphs."""

from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pase.plugin import ExpertOptions
from pipebench_pase.pricing import priced
from pipebench_pase.strategies import expert_splits, strategy_of
from pipebench_pase.strategy_plan import refuse_unsupported
from pipebench_pase.strategy_result import strategy_result


def plan(problem: Problem, context: Context) -> PlanResult:
    """The strategy with its cost in PaSE's terms; whether a search would consider it does not matter.

    Raises UnsupportedProblem for regimes, pins and clusters that one stage of split operators cannot express.
    """
    options = context.options
    assert isinstance(options, ExpertOptions)
    refuse_unsupported("expert", problem)
    prices = priced(problem, options)
    graph = problem.profile.graph
    name = strategy_of(graph) if options.strategy == "auto" else options.strategy
    splits = expert_splits(graph, name, prices.samples, problem.cluster.size)
    cost = prices.pricing.given(splits).costs.of([0] * len(graph.operators))
    chosen = (f"strategy: {name}",) if options.strategy == "auto" else ()
    return strategy_result(problem, prices, splits, cost, options.describe, notices=chosen)
