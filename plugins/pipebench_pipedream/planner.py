"""The planner `pipedream`: the best partition for each micro-batch, then the micro-batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.algorithms.idle_devices import idle_devices
from pipebench.algorithms.memory_limit import memory_limits
from pipebench.algorithms.micro_batches import micro_batch_candidates, micro_batch_notices
from pipebench.algorithms.micro_batches_bound import least_period_ns
from pipebench.algorithms.score import mini_batch_ns
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench.hooks.context import Context
from pipebench_pipedream import paper_plan
from pipebench_pipedream.inner import split_further
from pipebench_pipedream.intervals import IntervalCosts
from pipebench_pipedream.memory import reading_notices, refuse_reading
from pipebench_pipedream.order import linear_order
from pipebench_pipedream.partition import Partition, Search
from pipebench_pipedream.plans import plan_of
from pipebench_pipedream.plugin import PipeDreamOptions, Replication
from pipebench_pipedream.space import all_counts, refuse_unsupported, replica_choices


@dataclass(frozen=True, slots=True)
class _Candidate:
    time_ns: int
    plan: Plan
    bottleneck_ns: int


def plan(problem: Problem, context: Context) -> PlanResult:
    """The plan of the smallest bottleneck at its micro-batch, and the micro-batch of the shortest mini-batch.

    Raises UnsupportedProblem for pins that it cannot honour, InfeasibleProblem when no partition of the order
    fits at any micro-batch, or (async) none of those found can be scheduled.
    """
    options = context.options
    assert isinstance(options, PipeDreamOptions)
    refuse_unsupported(problem, options)
    if options.cost != "suite":
        if options.inner:
            raise UnsupportedProblem("pipedream[inner] is for cost=suite", "leave cost out")
        return paper_plan.plan(problem, options, context)
    found = _found(problem, options, context)
    return split_further(problem, found, options.inner, context) if options.inner else found


def _found(problem: Problem, options: PipeDreamOptions, context: Context) -> PlanResult:
    refuse_reading(problem, options.memory)
    order = linear_order(problem.profile.graph, options.order)
    sizes = micro_batch_candidates(problem, all_counts(problem, options.replication))
    bounds = _bounds(problem, sizes, options.replication)
    costs: dict[int, IntervalCosts] = {}
    unscheduled: list[int] = []
    for limit_bytes in memory_limits(problem):
        best: _Candidate | None = None
        for done, (bound_ns, size) in enumerate(bounds):
            if best is None:
                context.check_deadline()
            elif best.time_ns < bound_ns:
                context.count("sizes_left_out", len(bounds) - done)
                break
            elif context.out_of_time():
                return _result(problem, best, "limit", options)
            context.report(done / len(bounds), f"micro-batch {size}")
            if size not in costs:
                costs[size] = IntervalCosts(problem, order, replica_choices(problem, size, options.replication))
            partition = _partition(costs[size], size, limit_bytes, context)
            if partition is None:
                continue
            made = plan_of(costs[size], partition, size, options.execution)
            time_ns = mini_batch_ns(problem, made, context)
            if time_ns is None:
                unscheduled.append(_claim_ns(problem, size, partition.bottleneck_ns))
            elif best is None or (time_ns, size) < (best.time_ns, best.plan.stages[0].micro_batch):
                best = _Candidate(time_ns, made, partition.bottleneck_ns)
        if best is not None:
            return _result(problem, best, "heuristic", options)
    raise _infeasible(problem, sizes, unscheduled)


def _bounds(problem: Problem, sizes: Sequence[int], replication: Replication) -> list[tuple[int, int]]:
    """The least ns of a mini-batch at each size that leaves a choice of replicas; the most promising first."""
    model = CostModel(problem)
    return sorted(
        (problem.mini_batch // size * least_period_ns(model, size, counts, problem.cluster.size), size)
        for size in sizes
        if (counts := replica_choices(problem, size, replication))
    )


def _partition(costs: IntervalCosts, micro_batch: int, limit_bytes: int, context: Context) -> Partition | None:
    problem = costs.problem
    options = context.options
    search = Search(costs, micro_batch, limit_bytes, problem.cluster.size, problem.pins.pipeline, options.memory)
    partition, states, transitions = search.run(options.form)
    context.count("states", states)
    context.count("transitions", transitions)
    return partition


def _claim_ns(problem: Problem, micro_batch: int, bottleneck_ns: int) -> int:
    return problem.mini_batch // micro_batch * bottleneck_ns


def _result(problem: Problem, best: _Candidate, termination: Termination, options: PipeDreamOptions) -> PlanResult:
    counts = all_counts(problem, options.replication)
    notices = micro_batch_notices(problem, counts) + idle_devices(problem, best.plan)
    return PlanResult(
        plan=best.plan,
        claimed_s=_claim_ns(problem, best.plan.stages[0].micro_batch, best.bottleneck_ns) / NS_PER_S,
        claimed_native=float(best.bottleneck_ns),
        claimed_unit="ns a micro-batch (bottleneck)",
        termination=termination,
        notices=(*reading_notices(problem, options.memory), *notices),
    )


def _infeasible(problem: Problem, sizes: Sequence[int], unscheduled: Sequence[int]) -> InfeasibleProblem:
    pins, devices = problem.pins, problem.cluster.size
    tried = ", ".join(map(str, sizes))
    if unscheduled:
        return InfeasibleProblem(
            f"pipedream found partitions (micro-batch {tried}), but the scheduler fits none into "
            f"{problem.cluster.memory_bytes} bytes: the memory estimate is too low for them",
            claimed_s=min(unscheduled) / NS_PER_S,
        )
    stages = f"{pins.pipeline} stages" if pins.pipeline else f"at most {devices} stages"
    replicas = f" of {pins.data_parallel} replicas" if pins.data_parallel else ""
    return InfeasibleProblem(
        f"no cut into {stages}{replicas} on {devices} devices fits {problem.cluster.memory_bytes} bytes "
        f"at micro-batch {tried}"
    )
