"""What GraphPipe may choose on a problem: replicas; and what it has to refuse."""

from pipebench.algorithms.replica_counts import near_profiled, replica_counts
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


def all_counts(problem: Problem) -> tuple[int, ...]:
    """Numbers of replicas that some stage may have at some micro-batch, ascending."""
    pinned = problem.pins.data_parallel
    return replica_counts(problem.cluster.size) if pinned is None else (pinned,)


def replica_choices(problem: Problem, micro_batch: int) -> tuple[int, ...]:
    """Numbers of replicas for a stage, ascending; empty where the pinned one is too many.

    Powers of two and divisors of the number of devices that leave each replica at least one sample and, where
    there are any such, no more samples than were profiled.
    """
    most = min(problem.cluster.size, micro_batch)
    return near_profiled(problem, micro_batch, [count for count in all_counts(problem) if count <= most])
