"""The planner `piper`: the best partition at each profiled micro-batch, then the micro-batch."""

from dataclasses import dataclass
from itertools import pairwise

from pipebench.algorithms.downset_table import downset_table
from pipebench.algorithms.idle_devices import idle_devices
from pipebench.algorithms.memory_limit import memory_limits
from pipebench.algorithms.score import mini_batch_ns
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench.hooks.context import Context
from pipebench_piper.figures import Figures
from pipebench_piper.plans import plan_of
from pipebench_piper.plugin import PiperOptions
from pipebench_piper.search import COUNTERS, Partition, Search
from pipebench_piper.space import refuse_unsupported, sizes

MOST_TRIES = 12
"""memory=suite: searches with less and less memory."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    plan: Plan
    partition: Partition
    figures: Figures
    score: int


def plan(problem: Problem, context: Context) -> PlanResult:
    """The partition of the smallest stage time in Piper's model.

    Raises UnsupportedProblem for pins that it cannot honour and for too many downsets, InfeasibleProblem when
    nothing fits.
    """
    options = context.options
    assert isinstance(options, PiperOptions)
    refuse_unsupported(problem)
    rows = downset_table(
        _reversed(problem.profile.graph, options.states == "linear"),
        options.max_downsets,
        "use piper[states=linear], which cuts one topological order, or raise max_downsets (the search grows "
        "with its square)",
    )
    context.count("downsets", len(rows))
    candidates = sizes(problem)
    searches: dict[int, Search] = {}
    for limit_bytes in memory_limits(problem):
        found = []
        for done, size in enumerate(candidates):
            context.report(done / len(candidates), f"micro-batch {size}")
            context.check_deadline()
            if size not in searches:
                figures = Figures(problem, size, problem.pins.micro_batch is None)
                searches[size] = Search(figures, rows, options.choice == "exact")
            made = _solve(problem, searches[size], limit_bytes, options, context)
            if made is None:
                continue
            time_ns = mini_batch_ns(problem, made[0], context) if len(candidates) > 1 else 0
            if time_ns is not None:
                found.append(_Candidate(*made, searches[size].figures, time_ns))
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
    problem: Problem, search: Search, limit_bytes: int, options: PiperOptions, context: Context
) -> tuple[Plan, Partition] | None:
    planned = float(limit_bytes)
    for _ in range(MOST_TRIES):
        partition = search.best(planned, context.out_of_time, problem.pins.pipeline == 1)
        if partition is None:
            return None
        made = plan_of(search.figures, partition)
        excess = _excess(problem, made, limit_bytes) if options.memory == "suite" else 0
        if excess <= 0:
            return made, partition
        planned -= excess
        context.count("memory_retries")
    return None


def _excess(problem: Problem, plan: Plan, limit_bytes: int) -> int:
    """Bytes by which the suite's memory of some stage passes the limit, as many in flight as the plan says."""
    model = CostModel(problem)
    edges = model.messages(plan)
    return max(
        model.stage_memory(plan, position, edges).peak(stage.in_flight // stage.micro_batch) - limit_bytes
        for position, stage in enumerate(plan.stages)
    )


def _reversed(graph: OperatorGraph, linear: bool) -> list[list[int]]:
    """The graph whose downsets are closed under successors; `linear`: those of its topological order."""
    if not linear:
        return [list(before) for before in graph.predecessors]
    before: list[list[int]] = [[] for _ in graph.operators]
    for first, second in pairwise(graph.topological):
        before[second].append(first)
    return before


def _count(searches: dict[int, Search], context: Context) -> None:
    for search in searches.values():
        for name, amount in zip(COUNTERS, search.counters, strict=True):
            context.count(name, int(amount))


def _result(problem: Problem, best: _Candidate, options: PiperOptions, tried: int) -> PlanResult:
    proven = best.partition.proven and options.choice == "exact" and options.memory == "piper"
    termination: Termination = "optimal" if proven and tried == 1 and options.states == "downsets" else "heuristic"
    if best.partition.stopped:
        termination = "limit"
    notices = list(idle_devices(problem, best.plan))
    excess = _excess(problem, best.plan, problem.cluster.memory_bytes)
    if excess > 0:
        notices.append(
            f"with transfer buffers the plan needs {excess} bytes more than there are: Piper's memory model has "
            "none; piper[memory=suite] plans for them"
        )
    update_s = best.figures.formula.update_ns(0) / NS_PER_S
    return PlanResult(
        plan=best.plan,
        claimed_s=best.partition.seconds * best.figures.micro_batches + update_s,
        claimed_native=best.partition.seconds,
        claimed_unit="s a micro-batch (slowest stage)",
        bound_scope="slowest stage in Piper's model at this micro-batch" if termination == "optimal" else "",
        termination=termination,
        notices=tuple(notices),
    )
