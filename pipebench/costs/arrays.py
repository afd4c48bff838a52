"""The cost formulas on whole arrays, for planners that cost every interval of a linear order at once.

Each function equals its scalar namesake element by element: message_ns and all_reduce_ns of
costs.communicate, weight_state_bytes of costs.memory, whole_bytes of costs.quantise.
"""

import numpy as np

from pipebench.costs.memory import MASTER_BYTES, STATE_BYTES
from pipebench.costs.quantise import FloatArray, IntArray, nanoseconds
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Regime
from pipebench.domain.profile import ELEMENT_BYTES


def whole_bytes_of(amounts: FloatArray) -> IntArray:
    """Bytes, rounded up; amounts within one part in 10^12 above an integer count as that integer."""
    nearest = np.rint(amounts)
    close = np.abs(amounts - nearest) <= 1e-12 * np.maximum(1.0, np.abs(amounts))
    whole: IntArray = np.where(close, nearest, np.ceil(amounts)).astype(np.int64)
    return whole


def messages_ns(level: LinkLevel, bytes_sent: IntArray, senders: int, receivers: int) -> IntArray:
    """Time of each message, in the shape of bytes_sent."""
    rate = min(senders, receivers) * level.bandwidth_bytes_s
    times = nanoseconds(level.latency_s + bytes_sent / rate)
    times[bytes_sent == 0] = 0
    return times


def all_reduces_ns(level: LinkLevel, bytes_reduced: IntArray, devices: int) -> IntArray:
    """Time of each ring all-reduce, in the shape of bytes_reduced."""
    if devices <= 1:
        return np.zeros_like(bytes_reduced)
    steps = 2 * (devices - 1)
    times = nanoseconds(steps * (level.latency_s + bytes_reduced / devices / level.bandwidth_bytes_s))
    times[bytes_reduced == 0] = 0
    return times


def weight_states_bytes(regime: Regime, parameter_bytes: IntArray, replicas: int) -> IntArray:
    """Weight versions, gradient and optimizer state of each amount of weights, in its shape."""
    versions = 1 if regime.mode == "sync" else 2
    each = STATE_BYTES[regime.optimizer]
    if regime.optimizer != "none" and regime.precision != "fp32":
        each += MASTER_BYTES
    sharers = replicas if regime.optimizer_sharding == "zero1" else 1
    elements = parameter_bytes / ELEMENT_BYTES[regime.precision]
    gradient = whole_bytes_of(elements * ELEMENT_BYTES[regime.gradient_precision or regime.precision])
    return versions * parameter_bytes + gradient + whole_bytes_of(elements * each / sharers)
