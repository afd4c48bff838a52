"""The planner `tarnawski`: loads of accelerators and CPUs as the stages of a pipeline."""

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.planning import idle_devices, memory_limits
from pipebench.costs.formula import Formula
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_tarnawski.node_costs import CPU, every_load_bytes, node_costs
from pipebench_tarnawski.plugin import TarnawskiPlannerOptions
from pipebench_tarnawski.search import COUNTERS, LoadSearch, LoadSplit


def plan(problem: Problem, context: Context) -> PlanResult:
    """The split of the smallest largest load.

    Raises UnsupportedProblem for pins that it cannot honour and for too many downsets, InfeasibleProblem when
    nothing fits.
    """
    options = context.options
    assert isinstance(options, TarnawskiPlannerOptions)
    refuse_unsupported(problem)
    kinds = problem.cluster.devices
    accelerators = [device for device, kind in enumerate(kinds) if kind != CPU]
    cpus = [device for device, kind in enumerate(kinds) if kind == CPU]
    size = micro_batch(problem)
    every = every_load_bytes(problem)
    limits = [limit_bytes - every for limit_bytes in memory_limits(problem, accelerators or None)]
    search = LoadSearch(
        node_costs(problem, size, limits[0]),
        options.linearize,
        options.max_downsets,
        f"{COARSER}; or use tarnawski[linearize=true], which cuts one order of the operators, or raise "
        "max_downsets (the search grows with its square)",
    )
    context.count("downsets", search.downsets)
    split = None
    for limit_bytes in limits:
        split = split or search.best(len(accelerators), len(cpus), limit_bytes, context.out_of_time)
    for name, amount in zip(COUNTERS, search.counters, strict=True):
        context.count(name, int(amount))
    if split is None:
        raise InfeasibleProblem(
            f"tarnawski finds no split of the operators over {len(accelerators)} accelerators and "
            f"{len(cpus)} CPUs "
            f"whose sizes fit (micro-batch {size})",
            "use more devices or memory",
        )
    made = _plan(problem, split, size, accelerators, cpus)
    proven = not options.linearize and not split.stopped
    return PlanResult(
        plan=made,
        claimed_s=split.seconds * (problem.mini_batch // size) + _update_s(problem, size),
        claimed_native=split.seconds * 1e3,
        claimed_unit="ms a micro-batch (largest load)",
        bound_scope="largest load in Tarnawski's model at this micro-batch" if proven else "",
        termination="limit" if split.stopped else "optimal" if proven else "heuristic",
        notices=idle_devices(problem, made),
    )


def refuse_unsupported(problem: Problem) -> None:
    """Raise UnsupportedProblem for pins that these plans cannot express, and for two kinds of accelerators."""
    pins = problem.pins
    for name in ("tensor_parallel", "data_parallel", "virtual_stages"):
        if (getattr(pins, name) or 1) > 1:
            raise UnsupportedProblem(f"tarnawski has no {name}, {getattr(pins, name)} is pinned")
    if pins.recompute == "stage":
        raise UnsupportedProblem("tarnawski does not recompute, recompute=stage is pinned")
    if pins.pipeline is not None:
        raise UnsupportedProblem(f"tarnawski chooses the number of stages, {pins.pipeline} are pinned")
    kinds = sorted(set(problem.cluster.devices) - {CPU})
    if len(kinds) > 1:
        raise UnsupportedProblem(
            f"tarnawski plans for one type of accelerator and for type {CPU!r}; these are {', '.join(kinds)}"
        )


def micro_batch(problem: Problem) -> int:
    """The pinned one, or the largest profiled one that divides the mini-batch; the mini-batch where none does."""
    if problem.pins.micro_batch is not None:
        return problem.pins.micro_batch
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    return max((size for size in profiled if problem.mini_batch % size == 0), default=problem.mini_batch)


def _update_s(problem: Problem, size: int) -> float:
    """Seconds that every stage spends on its update once a mini-batch, the same for every load."""
    formula = Formula(problem.regime, problem.mini_batch)
    update_ns = formula.update_ns(0)
    if problem.regime.mode == "async":
        update_ns = formula.update_share_ns(update_ns, size) * (problem.mini_batch // size)
    return update_ns / NS_PER_S


def _plan(problem: Problem, split: LoadSplit, size: int, accelerators: list[int], cpus: list[int]) -> Plan:
    free, idle = iter(accelerators), iter(cpus)
    operators = problem.profile.graph.operators
    stages = tuple(
        Stage(
            operators=tuple(operators[operator].name for operator in load.operators),
            devices=(next(idle if load.cpu else free),),
            micro_batch=size,
        )
        for load in split.loads
    )
    if problem.regime.mode == "async":
        return Plan(stages=stages, routing="relay" if len(stages) > 1 else "direct")
    return Plan(stages=stages, order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))
