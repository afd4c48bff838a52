"""The only rounding: float seconds and bytes of a profile to integer nanoseconds and bytes.

Each operator is rounded at its micro-batch, half to even; bytes are rounded up. Everything that follows
(planners that claim optimality, schedules, check, simulation) adds these integers, so that a comparison can
never come out two ways.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
NS_PER_S = 1_000_000_000


def seconds_at(sizes: Sequence[int], times_s: FloatArray, samples: int) -> FloatArray:
    """Seconds at a micro-batch of `samples`, shape (operators,), from times_s of shape (operators, sizes).

    One profiled size: proportional. Several: piecewise linear, end segments extended, never below zero.
    """
    if len(sizes) == 1:
        return times_s[:, 0] * (samples / sizes[0])
    right = int(np.clip(np.searchsorted(sizes, samples), 1, len(sizes) - 1))
    left = right - 1
    if samples == sizes[right]:
        return times_s[:, right]
    share = (samples - sizes[left]) / (sizes[right] - sizes[left])
    interpolated: FloatArray = np.maximum(times_s[:, left] + share * (times_s[:, right] - times_s[:, left]), 0.0)
    return interpolated


def nanoseconds(seconds: FloatArray) -> IntArray:
    """Half-even rounding to integer nanoseconds."""
    return np.rint(seconds * NS_PER_S).astype(np.int64)


def whole_bytes(amount: float) -> int:
    """Bytes, rounded up; amounts within one part in 10^12 above an integer count as that integer."""
    nearest = round(amount)
    if abs(amount - nearest) <= 1e-12 * max(1.0, abs(amount)):
        return nearest
    return int(-(-amount // 1))
