"""madpipe[variant=paper]: MadPipe-DP on its grid under Algorithm 1, then the ILP (MadPipe 4.2 and 4.3)."""

from collections.abc import Callable
from dataclasses import dataclass

from pipebench.algorithms.chains.chain import Chain, build_chain
from pipebench.algorithms.chains.contiguous import StageRange, stage_range
from pipebench.algorithms.graph_orders import linearise
from pipebench.algorithms.micro_batches import micro_batch_candidates
from pipebench.algorithms.planning import memory_limits, whole_stages
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_madpipe.allocation import Allocation
from pipebench_madpipe.grid import DOWN, NEAREST, NO_LIMIT, UP, ValueGrid, least_value, most_work
from pipebench_madpipe.pattern import periodic_schedule, plan_pattern
from pipebench_madpipe.periodic_ilp import ilp_answer
from pipebench_madpipe.plugin import MadPipeOptions
from pipebench_madpipe.scheduled_plan import allocation_plan
from pipebench_madpipe.stage_table import CUT_BACKWARD, CUT_FORWARD, EVERY_WORK, WORK, RunTable, run_table

NS = 1e-9
ROUNDING = {"up": UP, "nearest": NEAREST, "down": DOWN}


@dataclass(frozen=True, slots=True)
class FirstPhase:
    """What Algorithm 1 returns: the least max(T_i, That_i) and its allocation; none: all T_i were infinite."""

    period_ns: int
    allocation: Allocation | None
    states: int


def algorithm_1(
    table: RunTable,
    memory: int,
    gpus: int,
    grid: ValueGrid,
    iterations: int,
    stop: Callable[[], bool] = lambda: False,
) -> FirstPhase:
    """Algorithm 1 with lines 2 and 7 corrected (A2, A3); targets are whole ns, rounded up."""
    lower = max(1, int(table.layers[EVERY_WORK][0]) - int(-table.layers[WORK][-1] // gpus))
    upper = most_work(table) + int(table.layers[CUT_FORWARD].sum() + table.layers[CUT_BACKWARD].sum())
    target, states = lower, 0
    best, found = -1, None
    for _ in range(iterations):
        if stop():
            break
        value, visited, bounds, special = least_value(
            table, memory, target, gpus, grid, lower, best if best >= 0 else NO_LIMIT
        )
        states += visited
        if value >= 0:
            reached = max(int(value), target)
            if best < 0 or reached < best:
                best, found = reached, Allocation(tuple(map(int, bounds)), tuple(map(bool, special)))
            upper = min(upper, reached)
        lower = max(lower, target if value < 0 else min(int(value), target))
        target = -(-(lower + upper) // 2)
    return FirstPhase(best, found, states)


def plan_paper(problem: Problem, context: Context) -> PlanResult:
    """The plan of shortest scheduled mini-batch over all micro-batch sizes; claimed is the first phase's period.

    Counters: states of MadPipe-DP; columns, rows, nodes of the ILP. Raises UnsupportedProblem,
    InfeasibleProblem when the first phase finds no allocation or the second no schedule for it, and
    DeadlineReached when the time is out before there is a plan.
    """
    stages = _stages(problem)
    model = CostModel(problem)
    layers = linearise(model.graph, context.options.cuts)
    recompute = whole_stages(problem, "madpipe")
    chains = [build_chain(model, layers, size, recompute) for size in micro_batch_candidates(problem)]
    if not chains[0].one_level:
        raise UnsupportedProblem(
            "madpipe[variant=paper] knows one link level, this cluster has several",
            "use madpipe, or a flat cluster",
        )
    estimates: list[int] = []
    for memory in memory_limits(problem):
        results: list[PlanResult] = []
        for chain in chains:
            if context.out_of_time():
                break
            first = _first_phase(chain, memory, stages.most, context)
            if first.allocation is None:
                continue
            estimates.append(problem.mini_batch // chain.micro_batch * first.period_ns)
            try:
                results.append(_second_phase(model, chain, first, first.allocation, context))
            except InfeasibleProblem:
                continue
        if results:
            return min(results, key=lambda result: _mini_batch_ns(problem, result))
        if context.out_of_time():
            raise DeadlineReached("the time limit was reached before any plan was found")
    name, devices = problem.profile.name, problem.cluster.size
    if estimates:
        raise InfeasibleProblem(
            f"the allocation that MadPipe-DP found for {name!r} on {devices} devices has no schedule that fits",
            "its estimate of the special GPU's memory is too low there; madpipe (variant=exact) finds what fits",
            claimed_s=min(estimates) * NS,
        )
    raise InfeasibleProblem(
        f"MadPipe-DP finds no allocation of {name!r} on {devices} devices in {memory} bytes a device",
        "give each device more memory, or use madpipe (variant=exact), which has no grid",
    )


def _stages(problem: Problem) -> StageRange:
    stages = stage_range(problem)
    if problem.pins.pipeline is not None or problem.pins.virtual_stages is not None:
        raise UnsupportedProblem(
            "madpipe[variant=paper] decides how many GPUs it uses and how many stages each of them runs",
            "leave pipeline and virtual_stages free, or use madpipe",
        )
    return stages


def _first_phase(chain: Chain, memory: int, gpus: int, context: Context) -> FirstPhase:
    options = context.options
    assert isinstance(options, MadPipeOptions)
    grid = ValueGrid(options.loads, options.memories, options.delays, ROUNDING[options.rounding])
    found = algorithm_1(run_table(chain), memory, gpus, grid, options.iterations, context.out_of_time)
    context.count("states", found.states)
    return found


def _second_phase(
    model: CostModel, chain: Chain, first: FirstPhase, allocation: Allocation, context: Context
) -> PlanResult:
    """The ILP for this allocation."""
    problem, options = model.problem, context.options
    plan = allocation_plan(model, chain, allocation)
    described = plan_pattern(model, plan, within_reserve=False)
    answer = ilp_answer(described, options.ilp_seconds, options.ilp_nodes, context)
    repeats = problem.mini_batch // chain.micro_batch
    notices = [] if answer.status == "optimal" else ["the solver stopped at a limit"]
    return PlanResult(
        plan=plan,
        schedule=periodic_schedule(described, answer.instants, answer.period_ns),
        scheduler="periodic-ilp",
        claimed_s=repeats * first.period_ns * NS,
        claimed_native=float(first.period_ns),
        claimed_unit="ns a micro-batch (first phase)",
        termination="heuristic" if answer.status == "optimal" else "limit",
        notices=tuple(notices),
    )


def _mini_batch_ns(problem: Problem, result: PlanResult) -> int:
    assert isinstance(result.schedule, PeriodicSchedule)
    return result.schedule.period_ns * (problem.mini_batch // result.plan.stages[0].micro_batch)
