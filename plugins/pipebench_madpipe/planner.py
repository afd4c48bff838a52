"""The planner `madpipe`, and variant=exact: the best plan of its class, with what is proven of it."""

from dataclasses import dataclass, replace
from itertools import accumulate

from pipebench.algorithms.chains.chain import Chain, build_chain
from pipebench.algorithms.chains.contiguous import StageRange, least_memory, shortest_period, stage_range
from pipebench.algorithms.chains.contiguous_plan import both_ways_bound_ns, class_conditions, take_turns
from pipebench.algorithms.graph_orders import CutRule, Layers, linearise
from pipebench.algorithms.micro_batches import micro_batch_candidates
from pipebench.algorithms.planning import memory_limits, whole_stages
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_madpipe.allocation import Allocation
from pipebench_madpipe.class_memory import least_class_memory
from pipebench_madpipe.class_search import ClassSearch, Effort, PeriodicAllocation
from pipebench_madpipe.plugin import MadPipeOptions
from pipebench_madpipe.scheduled_plan import scheduled_plan
from pipebench_madpipe.stage_table import run_table

NS = 1e-9


@dataclass(frozen=True, slots=True)
class _Best:
    chain: Chain
    found: PeriodicAllocation
    mini_batch_ns: int


@dataclass(frozen=True, slots=True)
class _Task:
    """What is searched: the chains of all micro-batch sizes."""

    model: CostModel
    chains: list[Chain]
    layers: Layers
    """With cuts only where at most one tensor crosses."""
    stages: StageRange
    non_contiguous: bool
    turns: bool
    """Whether both transfers of every cut take turns on one link, see take_turns."""

    @property
    def problem(self) -> Problem:
        return self.model.problem


def plan_exact(problem: Problem, context: Context) -> PlanResult:
    """The shortest mini_batch / micro_batch x period found, over all micro-batch sizes, under the first memory
    limit that admits a plan.

    Counters: probes (decisions at one period), states (contiguous), labels, nodes (schedules). Raises
    UnsupportedProblem (see stage_range), InfeasibleProblem when no plan of the class fits, or none was found,
    and DeadlineReached when the time is out before there is a plan.
    """
    options = context.options
    assert isinstance(options, MadPipeOptions)
    task = _task(problem, options.cuts)
    for memory in memory_limits(problem):
        best, lower_ns = _over_sizes(task, memory, context)
        if best is not None:
            return _result(task, best, memory, lower_ns, context)
        if context.out_of_time():
            raise DeadlineReached("the time limit was reached before any plan was found")
    raise _infeasible(task, memory)


def _task(problem: Problem, cuts: CutRule) -> _Task:
    stages = stage_range(problem)
    model = CostModel(problem)
    layers = linearise(model.graph, cuts)
    recompute = whole_stages(problem, "madpipe")
    chains = [build_chain(model, layers, size, recompute) for size in micro_batch_candidates(problem)]
    if len(layers) < stages.least:
        raise InfeasibleProblem(
            f"{stages.least} stages are pinned, {model.graph.name!r} can be cut into {len(layers)} at most"
        )
    one_each = problem.pins.virtual_stages == 1
    turns = all(take_turns(model, layers, chain.micro_batch) for chain in chains)
    return _Task(model, chains, linearise(model.graph), stages, chains[0].one_level and not one_each, turns)


def _over_sizes(task: _Task, memory: int, context: Context) -> tuple[_Best | None, int | None]:
    """The best plan of all sizes, and a lower bound over all sizes in ns of a mini-batch (None: not proven)."""
    mode = task.problem.cluster.link_mode
    best: _Best | None = None
    lowers: list[int] = []
    for done, chain in enumerate(task.chains):
        context.report(done / len(task.chains), f"micro-batch {chain.micro_batch}")
        repeats = task.problem.mini_batch // chain.micro_batch
        lower = shortest_period(chain, task.stages)
        below = None if best is None else -(-best.mini_batch_ns // repeats)
        if not context.out_of_time() and (below is None or lower < below):
            search = _search_chain(task, chain, memory, below, context)
            lower = search.lower_ns
            if search.best is not None:
                best = _Best(chain, search.best, repeats * search.best.period_ns)
        lowers.append(repeats * lower)
    if best is None or mode == "delay":
        return best, None
    if not any(chain.work_ns(0, chain.length) for chain in task.chains):
        return best, 0  # periods are 1 ns at least, a simulation takes no time
    if task.turns or task.non_contiguous:
        return best, min(best.mini_batch_ns, *lowers)
    ordered = sorted(task.chains, key=lambda chain: chain is not best.chain)
    problem, out = task.problem, context.out_of_time
    return best, both_ways_bound_ns(
        problem.mini_batch, ordered, task.stages, memory, best.mini_batch_ns, context.count, out
    )


def _search_chain(task: _Task, chain: Chain, memory: int, below: int | None, context: Context) -> ClassSearch:
    """Search one chain. The search of a long chain starts from the best plan with cuts at single tensors only."""
    both_ways = not task.turns and task.problem.cluster.link_mode != "delay"

    def search(of: Chain, both_ways: bool, start: PeriodicAllocation | None = None) -> ClassSearch:
        ran = ClassSearch(of, task.stages, memory, task.non_contiguous, context.out_of_time, both_ways)
        ran.run(below, start)
        for name, amount in ran.counts.items():
            context.count(name, amount)
        return ran

    start = None
    layers = task.layers
    if (
        task.non_contiguous
        and chain.length > Effort().short_chain
        and task.stages.least <= len(layers) < chain.length
    ):
        joined = build_chain(task.model, layers, chain.micro_batch, chain.recompute)
        found = search(joined, both_ways=False).best  # a bound with fewer cuts says nothing
        if found is not None:
            begins = [0, *accumulate(map(len, layers.operators))]
            bounds = tuple(begins[bound] for bound in found.allocation.bounds)
            start = replace(found, allocation=Allocation(bounds, found.allocation.special))
            below = found.period_ns
    return search(chain, both_ways, start)


def _result(task: _Task, best: _Best, memory: int, lower_ns: int | None, context: Context) -> PlanResult:
    plan, schedule = scheduled_plan(task.model, best.chain, best.found)
    proven = lower_ns in (0, best.mini_batch_ns)
    return PlanResult(
        plan=plan,
        schedule=schedule,
        scheduler="periodic-bnb",
        claimed_s=best.mini_batch_ns * NS,
        claimed_native=float(best.found.period_ns),
        claimed_unit="ns a micro-batch",
        lower_bound_s=lower_ns * NS if lower_ns is not None else None,
        bound_scope=_scope(task, memory) if lower_ns is not None else "",
        termination="optimal" if proven else "limit" if context.out_of_time() else "heuristic",
        notices=tuple(_notices(task, best, plan.routing == "relay")),
    )


def _scope(task: _Task, memory: int) -> str:
    cluster = task.problem.cluster
    parts = ["contiguous or one GPU with several stages" if task.non_contiguous else "contiguous"]
    if not task.non_contiguous and task.turns:
        parts = ["contiguous, 1F1B*"]
    parts += ["stages uninterrupted", "one micro-batch size", *class_conditions(task.problem, task.chains[0])]
    if not task.chains[0].one_level:
        parts.append("consecutive devices")
    if memory < cluster.memory_bytes:
        parts.append("memory less the reserve")
    return ", ".join(parts)


def _notices(task: _Task, best: _Best, relayed: bool) -> list[str]:
    notices = []
    graph = task.model.graph
    if any(len(neighbours) > 1 for neighbours in (*graph.successors, *graph.predecessors)):
        passed_on = "; tensors that skip stages are passed on from stage to stage" if relayed else ""
        notices.append(f"the graph is no chain: it is cut in topological order{passed_on}")
    layers, devices = len(best.chain.layers), task.problem.cluster.size
    if layers < devices:
        notices.append("the model has fewer layers than there are devices: some devices stay idle")
    if not task.non_contiguous:
        reason = "virtual_stages is pinned to 1" if best.chain.one_level else "the links are of several levels"
        notices.append(f"only contiguous allocations were searched: {reason}")
    return notices


def _infeasible(task: _Task, memory: int) -> InfeasibleProblem:
    name, devices = task.problem.profile.name, task.problem.cluster.size
    least, size = min((_least_memory(task, chain), chain.micro_batch) for chain in task.chains)
    message = f"no plan of {name!r} on {devices} devices fits in {memory} bytes a device"
    hint = f"every one needs at least {least} bytes, at micro-batch {size}"
    if least <= memory:
        message = f"no plan of {name!r} on {devices} devices was found that fits in {memory} bytes a device"
        hint = f"{hint}; none is contiguous, and no way to share a GPU was found"
    return InfeasibleProblem(message, hint)


def _least_memory(task: _Task, chain: Chain) -> int:
    """Bytes below which no plan of the class exists."""
    enough = least_memory(chain, task.stages)
    if not task.non_contiguous:
        return enough
    return least_class_memory(run_table(chain), task.stages.most, enough)


def plan(problem: Problem, context: Context) -> PlanResult:
    """The plan of the variant that the options name (see exact and paper)."""
    options = context.options
    assert isinstance(options, MadPipeOptions)
    if options.variant == "paper":
        from pipebench_madpipe.paper import plan_paper

        return plan_paper(problem, context)

    return plan_exact(problem, context)
