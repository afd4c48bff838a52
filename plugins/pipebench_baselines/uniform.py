"""The planner `uniform`: the same number of layers on every stage."""

from itertools import pairwise

from pipebench.algorithms.micro_batches import micro_batch_candidates, micro_batch_notices
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_baselines.best import best_plan
from pipebench_baselines.equal_cuts import equal_cuts, layer_groups
from pipebench_baselines.even_stages import even_plan
from pipebench_baselines.pins import refuse_unsupported


def plan(problem: Problem, context: Context) -> PlanResult:
    """Stages of equal numbers of layers, at the micro-batch of the shortest mini-batch.

    One stage a device (a pinned number of replicas: a stage for as many devices), or the pinned number of
    stages; fewer when there are fewer layers. The frameworks that cut so run stages in sequence, on a
    multi-branch graph too: order edges tie consecutive stages in sync; in async they form a chain that passes
    tensors on. Raises InfeasibleProblem when the pins ask for too many devices or layers, or nothing fits.
    """
    refuse_unsupported("uniform", problem)
    pins, devices = problem.pins, problem.cluster.size
    replicas = pins.data_parallel or 1
    if (pins.pipeline or 1) * replicas > devices:
        wanted = f"{pins.pipeline or 1} stages of {replicas} replicas"
        raise InfeasibleProblem(f"uniform: {wanted} are pinned, there are {devices} devices")
    groups = layer_groups(problem.profile.graph)
    if pins.pipeline is not None and pins.pipeline > len(groups):
        raise InfeasibleProblem(f"uniform: {pins.pipeline} stages are pinned, there are {len(groups)} layers")
    stages = pins.pipeline or min(devices // replicas, len(groups))
    cuts = equal_cuts(len(groups), stages)
    contents = [tuple(op for group in groups[a:b] for op in group) for a, b in pairwise(cuts)]
    plans = [
        even_plan(problem, contents, replicas, micro_batch, pins.recompute or "none")
        for micro_batch in micro_batch_candidates(problem, (replicas,))
        if micro_batch >= replicas
    ]
    if not plans:
        raise InfeasibleProblem(f"uniform: no micro-batch gives each of {replicas} replicas a sample")
    return best_plan("uniform", problem, plans, context, micro_batch_notices(problem, (replicas,)))
