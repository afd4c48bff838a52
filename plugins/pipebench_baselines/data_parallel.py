"""The planner `data-parallel`: the whole model on every device."""

from pipebench.algorithms.micro_batches import micro_batch_candidates, micro_batch_notices
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_baselines.best import best_plan
from pipebench_baselines.pins import refuse_unsupported


def plan(problem: Problem, context: Context) -> PlanResult:
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
    counts = (pins.data_parallel,) if pins.data_parallel else range(1, devices + 1)
    plans = []
    for micro_batch in micro_batch_candidates(problem, counts):
        replicas = pins.data_parallel or min(devices, micro_batch)
        if replicas <= micro_batch:
            plans.append(_one_stage(problem, micro_batch, replicas))
    if not plans:
        raise InfeasibleProblem(f"no micro-batch gives each of {pins.data_parallel} replicas a sample")
    return best_plan("data-parallel", problem, plans, context, micro_batch_notices(problem, counts))


def _one_stage(problem: Problem, micro_batch: int, replicas: int) -> Plan:
    graph = problem.profile.graph
    stage = Stage(
        operators=tuple(graph.operators[operator].name for operator in graph.topological),
        devices=tuple(range(replicas)),
        data_parallel=replicas,
        micro_batch=micro_batch,
        recompute=problem.pins.recompute or "none",
    )
    return Plan(stages=(stage,))
