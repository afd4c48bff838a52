"""The planner `rannc`: atoms, blocks, stages."""

from pipebench.algorithms.chains.level_cuts import BALANCE, balance_permille
from pipebench.algorithms.planning import idle_devices, memory_limits
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S, whole_bytes
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_rannc.atoms import GroupCosts, atoms_of
from pipebench_rannc.blocks import Blocks, Recipe, partition
from pipebench_rannc.candidates import plan_of
from pipebench_rannc.plugin import RaNNCOptions
from pipebench_rannc.runs import BlockRuns
from pipebench_rannc.search import best_of, every_cut, printed_search
from pipebench_rannc.space import refuse_unsupported
from pipebench_rannc.variants import Differences, differences

PROFILED_MICRO_BATCHES = 32
"""While blocks are made, a mini-batch is taken to be so many micro-batches (the released code's choice)."""


def plan(problem: Problem, context: Context) -> PlanResult:
    """The plan of the variant.

    Raises UnsupportedProblem for regimes, pins, clusters and graphs that it cannot express, InfeasibleProblem when
    no stages fit in memory, DeadlineReached when the time is out before there is a plan.
    """
    options = context.options
    assert isinstance(options, RaNNCOptions)
    refuse_unsupported(problem)
    chosen = differences(options)
    model = CostModel(problem)
    blocks = _blocks(model, options, chosen, context)
    runs = BlockRuns(model, blocks)
    notices = _notices(options, blocks)
    for memory_bytes in memory_limits(problem):
        limit_bytes = memory_bytes - whole_bytes(memory_bytes * chosen.margin)
        search = _best if options.variant == "best" else _plan_as_printed
        result = search(problem, runs, limit_bytes, options, context)
        if result is not None:
            context.count(BALANCE, balance_permille(model, result.plan))
            found = (*notices, *result.notices, *idle_devices(problem, result.plan))
            return PlanResult(
                plan=result.plan,
                schedule=result.schedule,
                scheduler=result.scheduler,
                claimed_s=result.claimed_s,
                claimed_native=result.claimed_native,
                claimed_unit=result.claimed_unit,
                termination=result.termination,
                notices=found,
            )
    context.check_deadline()
    raise _infeasible(problem, len(blocks))


def _blocks(model: CostModel, options: RaNNCOptions, chosen: Differences, context: Context) -> Blocks:
    problem = model.problem
    atoms = atoms_of(model.graph)
    samples = max(1, -(-problem.mini_batch // (problem.cluster.size * PROFILED_MICRO_BATCHES)))
    costs = GroupCosts(atoms, model, samples, problem.cluster.levels[0])
    recipe = Recipe(
        blocks=options.blocks,
        limit_bytes=problem.cluster.memory_bytes,
        released_coarsening=chosen.coarsening == "released",
        uncoarsening=chosen.uncoarsening,
        by_union=chosen.compaction == "union",
    )
    blocks = partition(atoms, costs, recipe, context.check_deadline)
    for name, amount in blocks.counters.items():
        context.count(name, amount)
    return blocks


def _plan_as_printed(
    problem: Problem, runs: BlockRuns, limit_bytes: int, options: RaNNCOptions, context: Context
) -> PlanResult | None:
    found = printed_search(problem, runs, limit_bytes, differences(options), context)
    if found is None:
        return None
    steps = differences(options).choice == "steps"
    # The bottleneck times the steps leaves out updates: each stage has this one at least.
    bottleneck_ns = found.bottleneck_ns + runs.model.formula.update_ns(0)
    return PlanResult(
        plan=plan_of(runs, found),
        claimed_s=(found.steps_ns if steps else bottleneck_ns) / NS_PER_S,
        claimed_native=float(found.value),
        claimed_unit="ns, longest forward + longest backward",
    )


def _best(
    problem: Problem, runs: BlockRuns, limit_bytes: int, options: RaNNCOptions, context: Context
) -> PlanResult | None:
    cuts = every_cut(problem, runs, limit_bytes, context)
    found = best_of(problem, runs, cuts, options.simulations, options.rivals, context)
    if found is None:
        return None
    return PlanResult(
        plan=found.plan,
        schedule=found.schedule,
        scheduler=found.scheduler,
        claimed_s=found.time_ns / NS_PER_S,
        termination="limit" if context.out_of_time() else "heuristic",
    )


def _notices(options: RaNNCOptions, blocks: Blocks) -> tuple[str, ...]:
    atoms = len(blocks.atoms)
    if options.blocks > atoms:
        return (f"blocks: {options.blocks} are asked for, each of {atoms} atomic subcomponents is one",)
    if options.blocks and len(blocks) > options.blocks:
        return (f"{len(blocks)} blocks, not {options.blocks}: joining more of them would not fit a device",)
    return ()


def _infeasible(problem: Problem, blocks: int) -> InfeasibleProblem:
    pins = problem.pins
    stages = f"{pins.pipeline} stages" if pins.pipeline else "stages"
    replicas = f" of {pins.data_parallel} replicas" if pins.data_parallel else ""
    return InfeasibleProblem(
        f"no {stages}{replicas} made of {blocks} blocks fit {problem.cluster.memory_bytes} bytes on "
        f"{problem.cluster.size} devices at any micro-batch",
        "use more devices or memory, or more blocks (rannc[blocks=64])",
    )
