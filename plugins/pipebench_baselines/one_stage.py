"""The planners `data-parallel` and `tensor-parallel`: the whole model in one stage on every device."""

from pipebench.algorithms.chains.stage_row import Way, plain
from pipebench.algorithms.coarse import require_whole_operators
from pipebench.algorithms.micro_batches import (
    honours_size,
    micro_batch_candidates,
    micro_batch_notices,
    pinned_sizes,
)
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import Repeated, of_layers, of_stages, repeated
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_baselines.best_plan import best_plan, refuse_unsupported


def data_parallel(problem: Problem, context: Context) -> PlanResult:
    """One stage with a replica on every device, at the micro-batch of the shortest mini-batch.

    Each update accumulates the gradients of mini_batch / micro_batch micro-batches and all-reduces them once.
    Micro-batches are shared out among the replicas, so they go up to the largest profiled size on every device.
    Every replica gets at least one sample: a micro-batch below the number of devices uses that many devices.
    Raises UnsupportedProblem for pins that one stage cannot honour, InfeasibleProblem when no micro-batch fits.
    """
    refuse_unsupported("data-parallel", problem)
    pins = problem.pins
    if (pins.pipeline or 1) > 1:
        raise UnsupportedProblem(f"data-parallel has one stage, {pins.pipeline} are pinned")
    devices = problem.cluster.size
    if (pins.data_parallel or 1) > devices:
        raise InfeasibleProblem(f"{pins.data_parallel} replicas are pinned, there are {devices} devices")
    counts = [pins.data_parallel] if pins.data_parallel else list(range(1, devices + 1))
    run = plain(problem, pins.recompute)
    plans = []
    for micro_batch in micro_batch_candidates(problem, counts):
        replicas = _replicas(problem, micro_batch, devices)
        if replicas <= micro_batch and _shares(problem, replicas, 1):
            plans.append(_replicated_stage(problem, run, micro_batch, replicas))
    if not plans:
        raise InfeasibleProblem(
            _no_groups(problem) or f"no micro-batch gives each of {pins.data_parallel} replicas a sample"
        )
    return best_plan("data-parallel", problem, plans, context, micro_batch_notices(problem, counts))


def _replicated_stage(problem: Problem, run: Way, micro_batch: int, replicas: int) -> Plan:
    graph = problem.profile.graph
    stage = Stage(
        operators=tuple(graph.operators[operator].name for operator in graph.topological),
        devices=tuple(range(replicas)),
        data_parallel=replicas,
        micro_batch=micro_batch,
        choice=run.choice_of(graph.topological),
        recompute=run.recompute,
    )
    return Plan(stages=(stage,))


def _shares(problem: Problem, replicas: int, degree: int) -> bool:
    """Whether the ranks of a stage make whole groups of those that share out experts, or a copy of the weights."""
    regime = problem.regime
    return regime.shares_experts_over(replicas, degree) and regime.shards_evenly(replicas)


def _no_groups(problem: Problem) -> str:
    """That no stage can be of as many ranks as share something out; '' where none do."""
    regime, what = problem.regime, "experts"
    ranks = regime.expert_ranks
    if regime.shards_in_groups:
        ranks, what = regime.shards(problem.cluster.accelerators), "a copy of the weights"
    return (
        "" if ranks == 1 else f"no micro-batch gives a multiple of {ranks} ranks, which share out {what}, a sample"
    )


def _replicas(problem: Problem, micro_batch: int, most: int) -> int:
    """Replicas that share the micro-batch: the pinned number, what pinned samples of one give, or as many as make
    whole groups that share out a copy of the weights.
    """
    pins = problem.pins
    if pins.data_parallel is not None:
        return pins.data_parallel
    if pins.micro_batch_size is not None:
        return micro_batch // pins.micro_batch_size
    return next(filter(problem.regime.shards_evenly, range(min(most, micro_batch), 0, -1)))


def tensor_parallel(problem: Problem, context: Context) -> PlanResult:
    """One stage of t x d devices at the degree t and the micro-batch of the shortest mini-batch.

    Degrees are those of the profile's alternatives that divide the devices; an operator without an alternative of
    the degree is computed whole by every device. Raises UnsupportedProblem, InfeasibleProblem when nothing fits.
    """
    require_whole_operators(problem, "tensor-parallel")
    pins, devices = problem.pins, problem.cluster.size
    if (pins.pipeline or 1) > 1 or (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem("tensor-parallel has one stage, more are pinned")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"tensor-parallel plans for devices of one type, these are {', '.join(kinds)}")
    degrees = _degrees(problem)
    if not degrees:
        raise UnsupportedProblem(
            "the profile has no alternatives for "
            + (f"tensor_parallel {pins.tensor_parallel}" if pins.tensor_parallel else "a degree above 1"),
            "profile with a device type whose peer bandwidth is known",
        )
    plans, counts = [], set()
    for degree in degrees:
        most = devices // degree
        if pins.data_parallel is not None and pins.data_parallel > most:
            continue
        choice = _choice(problem, degree)
        for size in _sizes(problem, pins.data_parallel or most, context.options.accumulation):
            replicas = _replicas(problem, size, most)
            shared = _shares(problem, replicas, degree)
            if shared and replicas <= min(size, most) and honours_size(problem, size, replicas):
                counts.add(replicas)
                plans.append(_split_stage(problem, size, replicas, degree, choice))
    if not plans:
        each = f" of {pins.micro_batch_size} samples each" if pins.micro_batch_size else ""
        raise InfeasibleProblem(
            _no_groups(problem) or f"{devices} devices have no room for the pinned replicas{each}"
        )
    return best_plan("tensor-parallel", problem, plans, context, micro_batch_notices(problem, sorted(counts)))


def _degrees(problem: Problem) -> list[int]:
    costs = problem.profile.on(problem.cluster.devices[0]).operators
    again = _again(problem)
    offered = [
        {a.tensor_parallel for a in each.alternatives if repeated(a) == own}
        for each, own in zip(costs, again, strict=True)
    ]
    layers = [each for each, own in zip(offered, again, strict=True) if own != "none"]
    known = set().union(*offered).intersection(*layers)
    pinned, devices = problem.pins.tensor_parallel, problem.cluster.size
    return sorted(d for d in known if (d == pinned if pinned else d > 1) and devices % d == 0)


def _choice(problem: Problem, degree: int) -> dict[str, str]:
    costs, again = problem.profile.on(problem.cluster.devices[0]).operators, _again(problem)
    return {
        each.operator: next(
            (a.id for a in each.alternatives if a.tensor_parallel == degree and repeated(a) == again[op]), ""
        )
        for op, each in enumerate(costs)
    }


def _again(problem: Problem) -> list[Repeated]:
    """What of each operator runs again; whole stages are recomputed as plain ones."""
    layers = of_layers(problem.pins.recompute) or "none"
    return ["none" if operator.layer is None else layers for operator in problem.profile.graph.operators]


def _sizes(problem: Problem, replicas: int, accumulation: bool) -> tuple[int, ...]:
    if not accumulation:
        return (problem.pins.micro_batch or problem.mini_batch,)
    if pinned_sizes(problem, range(1, replicas + 1)) == ():
        return ()
    return micro_batch_candidates(problem, range(1, replicas + 1))


def _split_stage(problem: Problem, micro_batch: int, replicas: int, degree: int, choice: dict[str, str]) -> Plan:
    graph = problem.profile.graph
    names = tuple(graph.operators[operator].name for operator in graph.topological)
    return Plan(
        stages=(
            Stage(
                operators=names,
                devices=tuple(range(replicas * degree)),
                data_parallel=replicas,
                tensor_parallel=degree,
                micro_batch=micro_batch,
                choice=tuple(choice[name] for name in names),
                recompute=of_stages(problem.pins.recompute),
            ),
        )
    )
