"""How many bytes of device memory a planner may plan for."""

from collections.abc import Sequence

from pipebench.costs.quantise import whole_bytes
from pipebench.domain.problem import Problem


def memory_limits(problem: Problem, devices: Sequence[int] | None = None) -> tuple[int, ...]:
    """Bytes to plan for, in the order to try them: memory less the reserve, then the whole memory.

    The memory is that of the smallest of `devices` (ids; None: all of the cluster). A plan found under the
    first limit fits, one found only under the second is tight. Without a reserve there is one limit.
    """
    cluster = problem.cluster
    if devices is None:
        memory = cluster.memory_bytes
    else:
        memory = min(cluster.type_of(device).memory_bytes for device in devices)
    usable = memory - whole_bytes(memory * problem.pins.reserve)
    return (usable, memory) if usable < memory else (memory,)
