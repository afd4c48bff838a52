"""The planner `graphpipe`: the best stages at each micro-batch size, then the size."""

from pipebench.algorithms.micro_batches import micro_batch_notices
from pipebench.algorithms.planning import idle_devices, memory_limits
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_graphpipe.candidates import best_candidate, paper_candidate
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.search import GraphPipeSearch, all_counts, refuse_unsupported
from pipebench_graphpipe.series_parallel import Decomposition


def linear_region_notices(problem: Problem, decomposition: Decomposition) -> tuple[str, ...]:
    """One notice for each region that is not series-parallel."""
    names = [operator.name for operator in problem.profile.graph.operators]
    return tuple(
        f"not series-parallel between {names[region[0]]!r} and {names[region[-1]]!r}: "
        f"{len(region)} operators put in a line"
        for region in decomposition.linearised
    )


def plan(problem: Problem, context: Context) -> PlanResult:
    """variant=paper: the plan of the smallest bottleneck at its micro-batch, and the micro-batch of the shortest
    mini-batch. Otherwise the plan of the shortest mini-batch among these and others.

    Raises UnsupportedProblem for regimes, pins and clusters that it cannot express, InfeasibleProblem when
    nothing in its space fits in memory at any micro-batch.
    """
    options = context.options
    assert isinstance(options, GraphPipeOptions)
    refuse_unsupported(problem)
    search = GraphPipeSearch(problem, options, context)
    choose = paper_candidate if options.variant == "paper" else best_candidate
    for memory_bytes in memory_limits(problem):
        best = choose(search, memory_bytes)
        if best is not None:
            return PlanResult(
                plan=best.plan,
                claimed_s=best.sample_ns * problem.mini_batch / NS_PER_S,
                claimed_native=best.sample_ns / NS_PER_S,
                claimed_unit="s/sample",
                termination="limit" if context.out_of_time() else "heuristic",
                notices=(
                    *linear_region_notices(problem, search.decomposition),
                    *micro_batch_notices(problem, all_counts(problem)),
                    *idle_devices(problem, best.plan),
                ),
            )
    raise _infeasible(search)


def _infeasible(search: GraphPipeSearch) -> InfeasibleProblem:
    """The error, with the least memory that would do at the smallest micro-batch."""
    problem = search.problem
    memory, pins = problem.cluster.memory_bytes, problem.pins
    replicas = f" of {pins.data_parallel} replicas" if pins.data_parallel else ""
    if not search.least_ns:
        return InfeasibleProblem(
            f"graphpipe has no stage{replicas}: {problem.cluster.size} devices, "
            f"micro-batches of at most {pins.micro_batch or problem.mini_batch} samples"
        )
    smallest = min(search.least_ns)
    needed = search.smallest_memory(smallest, memory)
    return InfeasibleProblem(
        f"no stages{replicas} on {problem.cluster.size} devices fit {memory} bytes at any micro-batch; "
        f"at micro-batch {smallest} {needed} bytes would do"
    )
