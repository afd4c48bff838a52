"""Times and memory as PipeDream's paper and its released optimizer count them, which are not the suite's.

Paper: section 3.1 (SOSP 2019). Released: optimizer_graph_hierarchical of the published code.
"""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.formula import ENDLESS
from pipebench.costs.quantise import IntArray


@kernel
def stage_s(  # pragma: no cover - compiled
    compute: float, parameters: float, replicas: int, bandwidth: float, machines_inside: int, released: bool
) -> float:
    """Seconds a micro-batch of a stage; released: `machines_inside` of the level below divide the all-reduce."""
    if released:
        reduce = 4.0 * (replicas - 1) * parameters / (bandwidth * replicas) / machines_inside
        return (compute + reduce) / replicas
    return max(compute, 2.0 * (replicas - 1) * parameters / bandwidth) / replicas


@kernel
def slower_of_cuts(  # pragma: no cover - compiled
    stage: float, received: float, sent: float, replicas: int, bandwidth: float, released: bool
) -> float:
    """Seconds of a stage or of what it receives, where that takes longer; released: or of what it sends.

    received, sent: bytes of a micro-batch. Their gradients go the other way.
    """
    links = float(replicas) if released else 1.0
    slower = max(stage, 2.0 * received / (bandwidth * links))
    if released:
        slower = max(slower, 2.0 * sent / (bandwidth * links))
    return slower


@kernel
def fits(held: float, behind: int, replicas: int, released: bool, limit: float) -> bool:  # pragma: no cover
    """Whether `held` bytes of weights and activations fit for each live micro-batch.

    behind: machines that come after the stage. The paper counts the stage itself, the code does not.
    """
    machines = behind if released else behind + replicas
    return -(-machines // replicas) * held <= limit


def released_micro_batches(saved_bytes: IntArray, parameter_bytes: IntArray, limit_bytes: int) -> IntArray:
    """How many copies of weights and saved activations, nothing else, fit within the limit."""
    each = saved_bytes + parameter_bytes
    return np.where(each > 0, limit_bytes // np.maximum(each, 1), ENDLESS)
