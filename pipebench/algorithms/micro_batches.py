"""Which micro-batch sizes a planner may choose from."""

from pipebench.domain.problem import Problem


def micro_batch_candidates(problem: Problem) -> tuple[int, ...]:
    """Ascending sizes that divide the mini-batch; just the pinned one where one is pinned.

    Several profiled sizes: those that divide. One profiled size: in sync every power of two (times are
    proportional); in async that size, because a smaller one would cost nothing and prove nothing.
    The mini-batch itself when nothing else divides it.
    """
    mini_batch = problem.mini_batch
    if problem.pins.micro_batch is not None:
        return (problem.pins.micro_batch,)
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    if len(profiled) == 1 and problem.regime.mode == "sync":
        profiled = tuple(2**power for power in range(mini_batch.bit_length()))
    return tuple(size for size in profiled if mini_batch % size == 0) or (mini_batch,)
