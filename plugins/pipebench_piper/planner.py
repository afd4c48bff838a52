"""The planner `piper`: the best partition at each profiled micro-batch, then the micro-batch."""

from dataclasses import dataclass
from itertools import pairwise

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.downset_table import downset_table
from pipebench.algorithms.fitting import at_full_pace, excess_bytes, search_within
from pipebench.algorithms.micro_batches import micro_batch_candidates
from pipebench.algorithms.planning import idle_devices, memory_limits, mini_batch_ns
from pipebench.costs.messages import messages
from pipebench.costs.placement import place, turns_between
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan, ReplicaMode, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench.domain.workload import pin_flag
from pipebench.hooks.context import Context
from pipebench_piper.cost_tables import MOST_DEVICES, CostTables
from pipebench_piper.plugin import PiperPlannerOptions
from pipebench_piper.search import COUNTERS, DownsetPartition, DownsetSearch, DownsetStage


def refuse_unsupported(problem: Problem) -> None:
    """Raise UnsupportedProblem for a regime, a pin or a cluster that these plans cannot express."""
    pins, cluster = problem.pins, problem.cluster
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("piper plans for synchronous updates; the problem is async", "use --regime sync")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"piper has no virtual stages, {pins.virtual_stages} are pinned")
    if (pins.pipeline or 1) > 1:
        raise UnsupportedProblem(
            f"piper chooses the number of stages, {pins.pipeline} are pinned",
            f"give {pin_flag('pipeline')} 1, or leave it out",
        )
    kinds = sorted(set(cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"piper plans for devices of one type, these are {', '.join(kinds)}")
    if cluster.size > MOST_DEVICES:
        raise UnsupportedProblem(f"piper plans for at most {MOST_DEVICES} devices, there are {cluster.size}")


def sizes(problem: Problem, replicas: ReplicaMode) -> tuple[int, ...]:
    """Micro-batches to try: those that honour the pins, or the profiled ones that divide the mini-batch.

    The mini-batch itself where none does. replicas: how the replicas of a stage share micro-batches.
    """
    pins = problem.pins
    if pins.micro_batch is not None or pins.micro_batch_size is not None:
        most = problem.cluster.size // (pins.tensor_parallel or 1)
        counts = [pins.data_parallel] if pins.data_parallel else list(range(1, most + 1))
        return micro_batch_candidates(problem, [1] if replicas == "round_robin" else counts)
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    return tuple(size for size in profiled if problem.mini_batch % size == 0) or (problem.mini_batch,)


def plan_of(figures: CostTables, partition: DownsetPartition) -> Plan:
    """Stages one after the other on consecutive devices.

    In flight is what Piper's memory counts: the sum of the degrees from the stage on, divided by its own and
    rounded up, of each replica.
    Raises UnsupportedProblem where two stages exchange tensors whose degrees meet again after too many turns.
    """
    devices = place([part.way.devices for part in partition.parts], figures.problem.cluster.size)
    stages = tuple(_stage(figures, part, ids) for part, ids in zip(partition.parts, devices, strict=True))
    made = Plan(stages=stages, order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))
    for message in messages(figures.problem.profile.graph, made):
        turns_between(stages[message.source], stages[message.target])
    return made


SMALL = 512, 64
"""Operators and devices up to which max_downsets is the only limit on the search."""
MOST_COMPARED = 1.5e11
"""Of larger problems: pairs of downsets times devices, ways of a stage and micro-batches; 10 to 20 s of work."""


def _refuse_large(problem: Problem, downsets: int, words: int, sizes: int) -> None:
    """Raise UnsupportedProblem for a large problem whose downsets take long to compare.

    words: of 64 operators, of a downset.
    """
    operators, devices = len(problem.profile.graph.operators), problem.cluster.size
    if operators <= SMALL[0] and devices <= SMALL[1]:
        return
    compared = downsets**2 * devices * devices.bit_length() * sizes * (1 + words / 8)
    if compared > MOST_COMPARED:
        raise UnsupportedProblem(
            f"piper would take long to compare {downsets} downsets of {operators} operators on {devices} devices",
            f"{COARSER}; or use piper[states=linear]",
        )


def _stage(figures: CostTables, part: DownsetStage, devices: tuple[int, ...]) -> Stage:
    operators = figures.problem.profile.graph.operators
    offered = figures.choices[part.way.tensor_parallel]
    chosen = [offered[node][position] for node, position in zip(part.operators, part.choice, strict=True)]
    choice = tuple("" if alternative is None else alternative.id for alternative in chosen)
    live = min(part.way.live(part.in_flight), -(-figures.micro_batches // part.way.turns))
    return Stage(
        operators=tuple(operators[node].name for node in part.operators),
        devices=devices,
        data_parallel=part.way.data_parallel,
        tensor_parallel=part.way.tensor_parallel,
        micro_batch=figures.micro_batch,
        replicas="round_robin" if part.way.turns > 1 else "split",
        in_flight=live * figures.micro_batch,
        choice=choice if any(choice) else (),
    )


@dataclass(frozen=True, slots=True)
class _Fitting:
    """whole: the best of all that the search counts as fitting; none was passed over because it does not fit."""

    plan: Plan
    partition: DownsetPartition
    whole: bool


@dataclass(frozen=True, slots=True)
class _DownsetCandidate:
    found: _Fitting
    figures: CostTables
    score: int


def plan(problem: Problem, context: Context) -> PlanResult:
    """The partition of the smallest stage time in Piper's model.

    Raises UnsupportedProblem for pins that it cannot honour and for too many downsets, InfeasibleProblem when
    nothing fits.
    """
    options = context.options
    assert isinstance(options, PiperPlannerOptions)
    refuse_unsupported(problem)
    rows = downset_table(
        _reverse_graph(problem.profile.graph, options.states == "linear"),
        options.max_downsets,
        f"{COARSER}; or use piper[states=linear], which cuts one topological order, or raise max_downsets (the "
        "search grows with its square)",
    )
    context.count("downsets", len(rows))
    candidates = sizes(problem, options.replicas)
    _refuse_large(problem, len(rows), rows.shape[1], len(candidates))
    searches: dict[int, DownsetSearch] = {}
    for limit_bytes in memory_limits(problem):
        found = []
        for done, size in enumerate(candidates):
            context.report(done / len(candidates), f"micro-batch {size}")
            context.check_deadline()
            if size not in searches:
                figures = CostTables(problem, size, options.replicas)
                searches[size] = DownsetSearch(figures, rows, options.choice == "exact", options.memory == "suite")
            made = _solve(problem, searches[size], limit_bytes, options, context)
            if made is None:
                continue
            time_ns = mini_batch_ns(problem, made.plan, context) if len(candidates) > 1 else 0
            if time_ns is not None:
                found.append(_DownsetCandidate(made, searches[size].figures, time_ns))
        if found:
            _count(searches, context)
            return _result(problem, min(found, key=lambda candidate: candidate.score), options, len(candidates))
    _count(searches, context)
    raise InfeasibleProblem(
        f"piper finds no stages on {problem.cluster.size} devices of {problem.cluster.memory_bytes} bytes for "
        f"micro-batches of {', '.join(map(str, candidates))}",
        "use more devices or memory, or a profile with alternatives that recompute or split operators",
    )


def _solve(
    problem: Problem, search: DownsetSearch, limit_bytes: int, options: PiperPlannerOptions, context: Context
) -> _Fitting | None:
    def best(planned: float) -> _Fitting | None:
        context.count("searches")
        partition = search.best(planned, context.out_of_time, problem.pins.pipeline == 1)
        whole = planned == limit_bytes
        if partition is None:
            return None
        made = plan_of(search.figures, partition)
        return _Fitting(at_full_pace(problem, made, limit_bytes) if made.takes_turns else made, partition, whole)

    if options.memory == "piper":
        return best(limit_bytes)
    return search_within(limit_bytes, best, lambda found: _excess(problem, found.plan, limit_bytes))


def _excess(problem: Problem, plan: Plan, limit_bytes: int) -> int:
    return excess_bytes(problem, plan, [limit_bytes] * len(plan.stages))


def _reverse_graph(graph: OperatorGraph, linear: bool) -> list[list[int]]:
    """The graph whose downsets are closed under successors; `linear`: those of its topological order."""
    if not linear:
        return [list(before) for before in graph.predecessors]
    before: list[list[int]] = [[] for _ in graph.operators]
    for first, second in pairwise(graph.topological):
        before[second].append(first)
    return before


def _count(searches: dict[int, DownsetSearch], context: Context) -> None:
    for search in searches.values():
        for name, amount in zip(COUNTERS, search.counters, strict=True):
            context.count(name, int(amount))


def _result(problem: Problem, best: _DownsetCandidate, options: PiperPlannerOptions, tried: int) -> PlanResult:
    """With memory=suite the best is proven where the search counts no more than the suite and its plan fits."""
    partition, plan = best.found.partition, best.found.plan
    proven = partition.proven and options.choice == "exact" and best.found.whole
    if options.memory == "suite":
        proven &= not best.figures.shared_weights
    termination: Termination = "optimal" if proven and tried == 1 and options.states == "downsets" else "heuristic"
    if partition.stopped:
        termination = "limit"
    notices = list(idle_devices(problem, plan))
    excess = _excess(problem, plan, problem.cluster.memory_bytes)
    if excess > 0:
        notices.append(
            f"with transfer buffers the plan needs {excess} bytes more than there are: Piper's memory model has "
            "none; piper[memory=suite] plans for them"
        )
    update_s = best.figures.formula.update_ns(0) / NS_PER_S
    return PlanResult(
        plan=plan,
        claimed_s=partition.seconds * best.figures.micro_batches + update_s,
        claimed_native=partition.seconds,
        claimed_unit="s a micro-batch (slowest stage)",
        bound_scope="slowest stage of what fits in Piper's model, at this micro-batch"
        if termination == "optimal"
        else "",
        termination=termination,
        notices=tuple(notices),
    )
