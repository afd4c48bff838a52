"""How many micro-batches PipeDream's stages hold in sync, and the order in which they run."""

from collections.abc import Sequence

from pipebench.domain.plan import ReplicaMode


def in_flight_of(replicas: Sequence[int], micro_batches: int, mode: ReplicaMode) -> list[int]:
    """Micro-batches that a replica of each stage of a chain holds.

    replicas: of each stage. micro_batches: of a mini-batch.
    In turn: one for each device from its own stage to the last, shared by the replicas. Else one for each stage.
    """
    kept = []
    for position, count in enumerate(replicas):
        if mode == "round_robin":
            kept.append(min(-(-sum(replicas[position:]) // count), -(-micro_batches // count)))
        else:
            kept.append(min(len(replicas) - position, micro_batches))
    return kept


def chained(stages: int) -> tuple[tuple[int, int], ...]:
    """Order edges that run so many stages one after the other."""
    return tuple((position, position + 1) for position in range(stages - 1))
