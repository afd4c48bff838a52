"""The planner `pipedream`: what it may choose, the best partition for each micro-batch, then the micro-batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.fitting import at_full_pace
from pipebench.algorithms.micro_batches import (
    least_period_ns,
    micro_batch_candidates,
    micro_batch_notices,
    near_profiled,
    replica_counts,
)
from pipebench.algorithms.planning import idle_devices, memory_limits, mini_batch_ns, refuse_recomputation
from pipebench.costs.model import CostModel
from pipebench.costs.placement import place
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, ReplicaMode, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench.hooks.context import Context
from pipebench_pipedream import paper_plan
from pipebench_pipedream.in_flight import chained, in_flight_of
from pipebench_pipedream.inner import split_further
from pipebench_pipedream.intervals import IntervalCosts, reading_notices, refuse_reading
from pipebench_pipedream.order import linear_order
from pipebench_pipedream.partition import IntervalPartition, IntervalSearch
from pipebench_pipedream.plugin import PipeDreamPlannerOptions, Replication

OWN_MODEL_ONLY = {
    "states": None,
    "branches": "kept",
    "communication": None,
    "levels": "flat",
    "idle": False,
}
"""Options that only cost=paper and cost=released have, with their defaults."""
SUITES = {"states": "chain"}
"""Those of their values that say what cost=suite does anyway."""


def refuse_unsupported(problem: Problem, options: PipeDreamPlannerOptions) -> None:
    """Raise UnsupportedProblem for a pin, a cluster or a set of options that these plans cannot express."""
    pins = problem.pins
    if options.replication == "none" and (pins.data_parallel or 1) > 1:
        raise UnsupportedProblem(f"pipedream[replication=none], but {pins.data_parallel} replicas are pinned")
    if options.cost == "suite":
        for name, plain in OWN_MODEL_ONLY.items():
            if getattr(options, name) not in (plain, SUITES.get(name)):
                raise UnsupportedProblem(
                    f"pipedream[{name}={getattr(options, name)}] is for PipeDream's own cost models",
                    "add cost=paper or cost=released",
                )
    if (pins.tensor_parallel or 1) > 1:
        raise UnsupportedProblem(f"pipedream has no tensor parallelism, {pins.tensor_parallel} is pinned")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"pipedream has no virtual stages, {pins.virtual_stages} are pinned")
    refuse_recomputation(problem, "pipedream")
    if pins.pipeline is not None and options.form == "bs":
        raise UnsupportedProblem(
            f"pipedream[form=bs] chooses the number of stages, {pins.pipeline} are pinned", "use form=k"
        )
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"pipedream plans for devices of one type, these are {', '.join(kinds)}")


def all_counts(problem: Problem, replication: Replication = "any") -> tuple[int, ...]:
    """Numbers of replicas that some stage may have at some micro-batch, ascending.

    async: every number. sync: powers of two and divisors of the number of devices. replication `none`: one.
    """
    devices, pinned = problem.cluster.size, problem.pins.data_parallel
    if pinned is not None:
        return (pinned,)
    if replication == "none":
        return (1,)
    counts = range(1, devices + 1) if problem.regime.mode == "async" else replica_counts(devices)
    return tuple(filter(problem.regime.shards_evenly, counts))


def counts_that_share(problem: Problem, options: PipeDreamPlannerOptions) -> tuple[int, ...]:
    """Numbers of replicas that a micro-batch is split over: 1 where they take turns."""
    return all_counts(problem, options.replication) if options.replicas == "split" else (1,)


def replica_choices(
    problem: Problem, micro_batch: int, replication: Replication = "any", mode: ReplicaMode = "round_robin"
) -> tuple[int, ...]:
    """Numbers of replicas for a stage at that micro-batch, ascending; empty where the pinned one is too many.

    In turn: those of all_counts, in sync such as divide the micro-batches of a mini-batch, so that all replicas
    run as many (a pinned number: so that each replica runs one at least).
    split: those that compute at least one sample each, in sync all devices and such as divide the micro-batch;
    where there are any, those that leave a replica no more samples than were profiled.
    """
    devices, sync = problem.cluster.size, problem.regime.mode == "sync"
    counts = [count for count in all_counts(problem, replication) if count <= devices]
    if mode == "round_robin":
        whole = problem.mini_batch // micro_batch
        if problem.pins.data_parallel is not None:
            return tuple(count for count in counts if count <= whole or not sync)
        return tuple(count for count in counts if not sync or whole % count == 0)
    counts = [count for count in counts if count <= micro_batch]
    if problem.pins.data_parallel is None and sync:
        counts = [count for count in counts if micro_batch % count == 0 or count == devices]
    return near_profiled(problem, micro_batch, counts)


def plan_of(
    costs: IntervalCosts,
    partition: IntervalPartition,
    micro_batch: int,
    execution: Literal["sequential", "graph"],
    limit_bytes: int,
) -> Plan:
    """The plan with one stage for each interval, on consecutive devices.

    sync, sequential: order edges between consecutive stages, in flight as the search counts. sync, graph: data
    dependencies only, in-flight left to the scheduler. Replicas in turn: in flight said in both, and as much more
    as keeps the pace where that fits. async: a chain, relayed unless every tensor goes to the next stage and every
    stage sends one there.
    """
    problem, graph = costs.problem, costs.model.graph
    sync = problem.regime.mode == "sync"
    devices = place(partition.replicas, problem.cluster.size)
    kept = in_flight_of(partition.replicas, problem.mini_batch // micro_batch, costs.mode)
    in_turn = costs.mode == "round_robin" and max(partition.replicas) > 1
    says = sync and (in_turn or execution == "sequential")
    starts = (0, *partition.ends[:-1])
    stages = tuple(
        Stage(
            operators=tuple(graph.operators[operator].name for operator in costs.order[start:end]),
            devices=devices[position],
            data_parallel=partition.replicas[position],
            micro_batch=micro_batch,
            replicas=costs.mode if partition.replicas[position] > 1 else "split",
            in_flight=kept[position] * micro_batch if says else 0,
        )
        for position, (start, end) in enumerate(zip(starts, partition.ends, strict=True))
    )
    made = Plan(
        stages=stages,
        order_edges=chained(len(stages)) if sync and execution == "sequential" else (),
        routing="direct" if sync or not costs.needs_relay(partition.ends) else "relay",
    )
    return at_full_pace(problem, made, limit_bytes) if says and in_turn else made


@dataclass(frozen=True, slots=True)
class _IntervalCandidate:
    time_ns: int
    plan: Plan
    bottleneck_ns: int


def plan(problem: Problem, context: Context) -> PlanResult:
    """The plan of the smallest bottleneck at its micro-batch, and the micro-batch of the shortest mini-batch.

    Raises UnsupportedProblem for pins that it cannot honour, InfeasibleProblem when no partition of the order
    fits at any micro-batch, or (async) none of those found can be scheduled.
    """
    options = context.options
    assert isinstance(options, PipeDreamPlannerOptions)
    refuse_unsupported(problem, options)
    if options.cost != "suite":
        if options.inner:
            raise UnsupportedProblem("pipedream[inner] is for cost=suite", "leave cost out")
        return paper_plan.plan(problem, options, context)
    found = _best_candidate(problem, options, context)
    return split_further(problem, found, options.inner, context) if options.inner else found


def _best_candidate(problem: Problem, options: PipeDreamPlannerOptions, context: Context) -> PlanResult:
    refuse_reading(problem, options.memory_reading)
    order = linear_order(problem.profile.graph, options.order)
    sizes = micro_batch_candidates(problem, counts_that_share(problem, options))
    _refuse_large(problem, len(order), sizes, options)
    bounds = _bounds(problem, sizes, options)
    costs: dict[int, IntervalCosts] = {}
    unscheduled: list[int] = []
    for limit_bytes in memory_limits(problem):
        best: _IntervalCandidate | None = None
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
                counts = replica_choices(problem, size, options.replication, options.replicas)
                costs[size] = IntervalCosts(problem, order, counts, options.replicas)
            partition = _partition(costs[size], size, limit_bytes, context)
            if partition is None:
                continue
            made = plan_of(costs[size], partition, size, options.execution, limit_bytes)
            time_ns = mini_batch_ns(problem, made, context)
            if time_ns is None:
                unscheduled.append(_claim_ns(problem, size, partition.bottleneck_ns))
            elif best is None or (time_ns, size) < (best.time_ns, best.plan.stages[0].micro_batch):
                best = _IntervalCandidate(time_ns, made, partition.bottleneck_ns)
        if best is not None:
            return _result(problem, best, "heuristic", options)
    raise _infeasible(problem, sizes, unscheduled)


MOST_INTERVALS = 2**25
"""Intervals of the order times numbers of replicas: tables of about 230 bytes for each."""
MOST_SUFFIXES = 2**27
"""Suffixes of the order times numbers of replicas times devices: tables of 20 bytes for each."""


def _refuse_large(problem: Problem, places: int, sizes: Sequence[int], options: PipeDreamPlannerOptions) -> None:
    """Raise UnsupportedProblem where the tables of all intervals, or of all suffixes, would not fit in memory."""
    most = max(
        (len(replica_choices(problem, size, options.replication, options.replicas)) for size in sizes), default=0
    )
    suffixes = most * (places + 1) * (problem.cluster.size + 1)
    if suffixes > MOST_SUFFIXES:
        raise UnsupportedProblem(
            f"pipedream would keep {suffixes:.3g} suffixes of {places} operators on {problem.cluster.size} "
            f"devices, it keeps at most {MOST_SUFFIXES:.3g}",
            COARSER,
        )
    intervals = most * (places + 1) ** 2
    if intervals > MOST_INTERVALS:
        raise UnsupportedProblem(
            f"pipedream would keep {intervals:.3g} intervals of {places} operators, it keeps at most "
            f"{MOST_INTERVALS:.3g}",
            COARSER,
        )


def _bounds(problem: Problem, sizes: Sequence[int], options: PipeDreamPlannerOptions) -> list[tuple[int, int]]:
    """The least ns of a mini-batch at each size that leaves a choice of replicas; the most promising first."""
    model = CostModel(problem)
    found = []
    for size in sizes:
        counts = replica_choices(problem, size, options.replication, options.replicas)
        if counts:
            # In turn, a replica computes all samples of a micro-batch.
            shared = counts if options.replicas == "split" else (1,)
            least_ns = least_period_ns(model, size, shared, problem.cluster.size)
            found.append((problem.mini_batch // size * least_ns, size))
    return sorted(found)


def _partition(
    costs: IntervalCosts, micro_batch: int, limit_bytes: int, context: Context
) -> IntervalPartition | None:
    problem = costs.problem
    options = context.options
    search = IntervalSearch(
        costs, micro_batch, limit_bytes, problem.cluster.size, problem.pins.pipeline, options.memory_reading
    )
    partition, states, transitions = search.run(options.form)
    context.count("states", states)
    context.count("transitions", transitions)
    return partition


def _claim_ns(problem: Problem, micro_batch: int, bottleneck_ns: int) -> int:
    return problem.mini_batch // micro_batch * bottleneck_ns


def _result(
    problem: Problem, best: _IntervalCandidate, termination: Termination, options: PipeDreamPlannerOptions
) -> PlanResult:
    notices = micro_batch_notices(problem, counts_that_share(problem, options)) + idle_devices(problem, best.plan)
    return PlanResult(
        plan=best.plan,
        claimed_s=_claim_ns(problem, best.plan.stages[0].micro_batch, best.bottleneck_ns) / NS_PER_S,
        claimed_native=float(best.bottleneck_ns),
        claimed_unit="ns a micro-batch (bottleneck)",
        termination=termination,
        notices=(*reading_notices(problem, options.memory_reading), *notices),
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
