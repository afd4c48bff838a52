"""The planner `graphpipe`: the best stages at each micro-batch size, then the size."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.algorithms.memory_limit import memory_limits
from pipebench.algorithms.score import mini_batch_ns
from pipebench.costs.estimate import estimate
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_graphpipe.assembly import plan_of
from pipebench_graphpipe.notices import linearised, unused_devices
from pipebench_graphpipe.pins import refuse_unsupported
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.search import Search

SIMULATED = 12
"""Relaxed targets: how many of their plans, those that the closed form likes best, are simulated."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan, the longest period of its stages, and whether that is the smallest at its micro-batch."""

    plan: Plan
    bottleneck_ns: int
    smallest: bool

    @property
    def sample_ns(self) -> float:
        """Time per sample of the bottleneck stage."""
        return self.bottleneck_ns / self.plan.stages[0].micro_batch


def plan(problem: Problem, context: Context) -> PlanResult:
    """The plan of the smallest bottleneck at its micro-batch, and the micro-batch of the shortest mini-batch.

    Raises UnsupportedProblem for regimes, pins and clusters that it cannot express, InfeasibleProblem when
    nothing in its space fits in memory at any micro-batch.
    """
    options = context.options
    assert isinstance(options, GraphPipeOptions)
    refuse_unsupported(problem)
    search = Search(problem, options, context)
    for memory_bytes in memory_limits(problem):
        candidates = _candidates(search, memory_bytes)
        if candidates:
            best = _best(problem, candidates, context)
            return PlanResult(
                plan=best.plan,
                claimed_s=best.sample_ns * problem.mini_batch / NS_PER_S,
                claimed_native=best.sample_ns / NS_PER_S,
                claimed_unit="s/sample",
                termination="limit" if context.out_of_time() else "heuristic",
                notices=linearised(problem, search.decomposition) + unused_devices(problem, best.plan),
            )
    raise _infeasible(search)


def _candidates(search: Search, memory_bytes: int) -> list[Candidate]:
    candidates: list[Candidate] = []
    for done, micro_batch in enumerate(search.micro_batches):
        if not candidates:
            search.context.check_deadline()
        elif search.context.out_of_time():
            break
        search.context.report(done / len(search.micro_batches), f"micro-batch {micro_batch}")
        for number, found in enumerate(search.partitions(search.size(micro_batch), memory_bytes)):
            made = plan_of(search.problem, found, search.recompute)
            candidates.append(Candidate(made, found.bottleneck_ns, smallest=number == 0))
    return candidates


def _best(problem: Problem, candidates: Sequence[Candidate], context: Context) -> Candidate:
    """By the objective; the first of equals."""
    options: GraphPipeOptions = context.options
    if options.objective == "tps":
        return min(candidates, key=lambda candidate: candidate.sample_ns)
    relaxed = [candidate for candidate in candidates if not candidate.smallest]
    relaxed.sort(key=lambda candidate: estimate(problem, candidate.plan))
    simulated = [candidate for candidate in candidates if candidate.smallest] + relaxed[:SIMULATED]
    best, best_ns = simulated[0], None
    for number, candidate in enumerate(simulated):
        if number and context.out_of_time():
            break
        time_ns = mini_batch_ns(problem, candidate.plan, context)
        if time_ns is not None and (best_ns is None or time_ns < best_ns):
            best, best_ns = candidate, time_ns
    return best


def _infeasible(search: Search) -> InfeasibleProblem:
    """The error, with the least memory that would do at the smallest micro-batch."""
    problem = search.problem
    memory, pins = problem.cluster.memory_bytes, problem.pins
    replicas = f" of {pins.data_parallel} replicas" if pins.data_parallel else ""
    if not search.micro_batches:
        return InfeasibleProblem(
            f"graphpipe has no stage{replicas}: {problem.cluster.size} devices, "
            f"micro-batches of at most {pins.micro_batch or problem.mini_batch} samples"
        )
    smallest = search.micro_batches[0]
    needed = search.smallest_memory(search.size(smallest), memory)
    return InfeasibleProblem(
        f"no stages{replicas} on {problem.cluster.size} devices fit {memory} bytes at any micro-batch; "
        f"at micro-batch {smallest} {needed} bytes would do"
    )
