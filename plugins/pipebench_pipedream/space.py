"""What PipeDream may choose on a problem: replicas, stages; and what it has to refuse."""

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem


def refuse_unsupported(problem: Problem, form: str) -> None:
    """Raise UnsupportedProblem for a pin or a cluster that these plans cannot express."""
    pins = problem.pins
    if (pins.tensor_parallel or 1) > 1:
        raise UnsupportedProblem(f"pipedream has no tensor parallelism, {pins.tensor_parallel} is pinned")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"pipedream has no virtual stages, {pins.virtual_stages} are pinned")
    if pins.recompute == "stage":
        raise UnsupportedProblem("pipedream does not recompute, recompute=stage is pinned")
    if pins.pipeline is not None and form == "bs":
        raise UnsupportedProblem(
            f"pipedream[form=bs] chooses the number of stages, {pins.pipeline} are pinned", "use form=k"
        )
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"pipedream plans for devices of one type, these are {', '.join(kinds)}")


def replica_choices(problem: Problem, micro_batch: int) -> tuple[int, ...]:
    """Numbers of replicas for a stage at that micro-batch, ascending; empty where the pinned one is too many.

    async: every number. sync: powers of two that divide the micro-batch. A replica
    computes at least one sample.
    """
    devices, pinned = problem.cluster.size, problem.pins.data_parallel
    if pinned is not None:
        return (pinned,) if pinned <= min(devices, micro_batch) else ()
    choices = range(1, min(devices, micro_batch) + 1)
    if problem.regime.mode == "async":
        return tuple(choices)
    return tuple(count for count in choices if count & (count - 1) == 0 and micro_batch % count == 0)
