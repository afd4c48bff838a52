"""The planner `uniform`: the same number of layers on every stage."""

from itertools import pairwise

from pipebench.algorithms.degrees import Way, degrees, plain, way
from pipebench.algorithms.layer_groups import layer_groups
from pipebench.algorithms.micro_batches import micro_batch_candidates, micro_batch_notices
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_baselines.best import best_plan
from pipebench_baselines.equal_cuts import equal_cuts
from pipebench_baselines.even_stages import even_plan
from pipebench_baselines.pins import refuse_unsupported


def plan(problem: Problem, context: Context) -> PlanResult:
    """Stages of equal numbers of layers, at the micro-batch of the shortest mini-batch.

    Tensor parallelism where it is pinned. One stage a device (a pinned number of replicas: a stage for as many
    devices), or the pinned number of stages; fewer when there are fewer layers. The frameworks that cut so run
    stages in sequence, on a multi-branch graph too: order edges tie consecutive stages in sync; in async they
    form a chain that passes tensors on. Raises InfeasibleProblem when the pins ask for too many devices or
    layers, or nothing fits.
    """
    refuse_unsupported("uniform", problem, tensor_parallel=True)
    pins, devices = problem.pins, problem.cluster.size
    replicas, tensor = pins.data_parallel or 1, pins.tensor_parallel or 1
    if (pins.pipeline or 1) * replicas * tensor > devices:
        wanted = f"{pins.pipeline or 1} stages of {replicas} replicas" + (f" of {tensor} devices" * (tensor > 1))
        raise InfeasibleProblem(f"uniform: {wanted} are pinned, there are {devices} devices")
    groups = layer_groups(problem.profile.graph)
    if pins.pipeline is not None and pins.pipeline > len(groups):
        raise InfeasibleProblem(f"uniform: {pins.pipeline} stages are pinned, there are {len(groups)} layers")
    run = _way(problem, tensor)
    stages = pins.pipeline or min(devices // (replicas * tensor), len(groups))
    cuts = equal_cuts(len(groups), stages)
    contents = [tuple(op for group in groups[a:b] for op in group) for a, b in pairwise(cuts)]
    plans = [
        even_plan(problem, contents, replicas, micro_batch, run)
        for micro_batch in micro_batch_candidates(problem, (replicas,))
        if micro_batch >= replicas
    ]
    if not plans:
        raise InfeasibleProblem(f"uniform: no micro-batch gives each of {replicas} replicas a sample")
    return best_plan("uniform", problem, plans, context, micro_batch_notices(problem, (replicas,)))


def _way(problem: Problem, tensor: int) -> Way:
    """How operators run at the pinned degree; where only recomputation is pinned, stages recompute as a whole."""
    recompute = problem.pins.recompute or "none"
    if tensor == 1:
        return plain(problem, recompute)
    found = way(problem, tensor, recompute == "stage")
    if found is None:
        offered = ", ".join(map(str, degrees(problem)))
        raise UnsupportedProblem(
            f"uniform: tensor parallelism {tensor} is pinned, the profile offers {offered}",
            f"use one of {offered}",
        )
    return found
