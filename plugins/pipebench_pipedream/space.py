"""What PipeDream may choose on a problem: replicas, stages; and what it has to refuse."""

from pipebench.algorithms.replica_counts import near_profiled, replica_counts
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench_pipedream.plugin import PipeDreamOptions, Replication

OWN_MODEL_ONLY = {
    "states": "chain",
    "branches": "kept",
    "communication": None,
    "levels": "flat",
    "idle": False,
}
"""Options that only cost=paper and cost=released have, with their defaults."""


def refuse_unsupported(problem: Problem, options: PipeDreamOptions) -> None:
    """Raise UnsupportedProblem for a pin, a cluster or a set of options that these plans cannot express."""
    pins = problem.pins
    if options.replication == "none" and (pins.data_parallel or 1) > 1:
        raise UnsupportedProblem(f"pipedream[replication=none], but {pins.data_parallel} replicas are pinned")
    if options.cost == "suite":
        for name, plain in OWN_MODEL_ONLY.items():
            if getattr(options, name) != plain:
                raise UnsupportedProblem(
                    f"pipedream[{name}={getattr(options, name)}] is for PipeDream's own cost models",
                    "add cost=paper or cost=released",
                )
    if (pins.tensor_parallel or 1) > 1:
        raise UnsupportedProblem(f"pipedream has no tensor parallelism, {pins.tensor_parallel} is pinned")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"pipedream has no virtual stages, {pins.virtual_stages} are pinned")
    if pins.recompute == "stage":
        raise UnsupportedProblem("pipedream does not recompute, recompute=stage is pinned")
    if pins.pipeline is not None and options.form == "bs":
        raise UnsupportedProblem(
            f"pipedream[form=bs] chooses the number of stages, {pins.pipeline} are pinned", "use form=k"
        )
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"pipedream plans for devices of one type, these are {', '.join(kinds)}")


def all_counts(problem: Problem, replication: Replication = "any") -> tuple[int, ...]:
    """Numbers of replicas that some stage may have at some micro-batch, ascending.

    async: every number. sync: powers of two and divisors of the number of devices. replication `none`: one.
    """
    devices, pinned = problem.cluster.size, problem.pins.data_parallel
    if pinned is not None:
        return (pinned,)
    if replication == "none":
        return (1,)
    return tuple(range(1, devices + 1)) if problem.regime.mode == "async" else replica_counts(devices)


def replica_choices(problem: Problem, micro_batch: int, replication: Replication = "any") -> tuple[int, ...]:
    """Numbers of replicas for a stage at that micro-batch, ascending; empty where the pinned one is too many.

    Those of all_counts that compute at least one sample each, in sync all devices and such as divide the
    micro-batch; where there are any, those that leave a replica no more samples than were profiled.
    """
    devices = problem.cluster.size
    counts = [count for count in all_counts(problem, replication) if count <= min(devices, micro_batch)]
    if problem.pins.data_parallel is None and problem.regime.mode == "sync":
        counts = [count for count in counts if micro_batch % count == 0 or count == devices]
    return near_profiled(problem, micro_batch, counts)
