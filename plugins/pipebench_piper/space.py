"""What Piper may choose on a problem, and what it has to refuse."""

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench_piper.figures import MOST_DEVICES


def refuse_unsupported(problem: Problem) -> None:
    """Raise UnsupportedProblem for a regime, a pin or a cluster that these plans cannot express."""
    pins, cluster = problem.pins, problem.cluster
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("piper plans for synchronous updates; the problem is async", "use --regime sync")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"piper has no virtual stages, {pins.virtual_stages} are pinned")
    if (pins.pipeline or 1) > 1:
        raise UnsupportedProblem(
            f"piper chooses the number of stages, {pins.pipeline} are pinned", "pin it to 1 or not at all"
        )
    kinds = sorted(set(cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"piper plans for devices of one type, these are {', '.join(kinds)}")
    if cluster.size > MOST_DEVICES:
        raise UnsupportedProblem(f"piper plans for at most {MOST_DEVICES} devices, there are {cluster.size}")


def sizes(problem: Problem) -> tuple[int, ...]:
    """Micro-batches to try: the pinned one, or the profiled ones that divide the mini-batch.

    The mini-batch itself where none does.
    """
    if problem.pins.micro_batch is not None:
        return (problem.pins.micro_batch,)
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    return tuple(size for size in profiled if problem.mini_batch % size == 0) or (problem.mini_batch,)
