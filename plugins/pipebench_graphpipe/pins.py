"""What GraphPipe may choose on a problem: replicas; and what it has to refuse."""

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem


def refuse_unsupported(problem: Problem) -> None:
    """Raise UnsupportedProblem for a regime, a pin or a cluster that these plans cannot express."""
    pins = problem.pins
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("graphpipe plans for the sync regime only", "use regime sync")
    if (pins.tensor_parallel or 1) > 1:
        raise UnsupportedProblem(f"graphpipe has no tensor parallelism, {pins.tensor_parallel} is pinned")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"graphpipe has no virtual stages, {pins.virtual_stages} are pinned")
    if (pins.pipeline or 1) > 1:
        raise UnsupportedProblem(
            f"graphpipe chooses the number of stages, {pins.pipeline} are pinned", "pin pipeline to 1, or leave it"
        )
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"graphpipe plans for devices of one type, these are {', '.join(kinds)}")


def replica_choices(problem: Problem, micro_batch: int) -> tuple[int, ...]:
    """Numbers of replicas for a stage, ascending; empty where the pinned one is too many.

    Powers of two, at least one sample for each replica.
    """
    most, pinned = min(problem.cluster.size, micro_batch), problem.pins.data_parallel
    if pinned is not None:
        return (pinned,) if pinned <= most else ()
    return tuple(2**power for power in range(most.bit_length()))
