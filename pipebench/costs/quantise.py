"""The only rounding: float seconds and bytes of a profile to integer nanoseconds and bytes.

Each operator is rounded at its micro-batch, half to even; bytes are rounded up. Everything that follows
(planners that claim optimality, schedules, check, simulation) adds these integers, so that a comparison can
never come out two ways.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
NS_PER_S = 1_000_000_000


@overload
def seconds_at(sizes: Sequence[int], times_s: tuple[float, ...], samples: int) -> float: ...
@overload
def seconds_at(sizes: Sequence[int], times_s: FloatArray, samples: int) -> FloatArray: ...
def seconds_at(sizes: Sequence[int], times_s: Any, samples: int) -> Any:
    """Seconds at a micro-batch of `samples`: of one operator, from a time for each size; or of shape (operators,),
    from times_s of shape (operators, sizes).

    One profiled size: proportional. Several: piecewise linear, end segments extended, never below zero.
    """
    times_s = times_s.T if isinstance(times_s, np.ndarray) else times_s
    if len(sizes) == 1:
        return times_s[0] * (samples / sizes[0])
    right = min(max(bisect_left(sizes, samples), 1), len(sizes) - 1)
    left = right - 1
    if samples == sizes[right]:
        return times_s[right]
    share = (samples - sizes[left]) / (sizes[right] - sizes[left])
    interpolated = times_s[left] + share * (times_s[right] - times_s[left])
    return np.maximum(interpolated, 0.0) if isinstance(interpolated, np.ndarray) else max(interpolated, 0.0)


@overload
def nanoseconds(seconds: float) -> int: ...
@overload
def nanoseconds(seconds: FloatArray) -> IntArray: ...
def nanoseconds(seconds: Any) -> Any:
    """Half-even rounding to integer nanoseconds, of one time or of an array of them."""
    if isinstance(seconds, np.ndarray):
        return np.rint(seconds * NS_PER_S).astype(np.int64)
    return round(seconds * NS_PER_S)


@overload
def whole_bytes(amount: float) -> int: ...
@overload
def whole_bytes(amount: FloatArray) -> IntArray: ...
def whole_bytes(amount: Any) -> Any:
    """Bytes, rounded up, of one amount or of an array of them.

    An amount within one part in 10^12 above an integer counts as that integer.
    """
    if isinstance(amount, np.ndarray):
        rounded = np.rint(amount)
        close = np.abs(amount - rounded) <= 1e-12 * np.maximum(1.0, np.abs(amount))
        return np.where(close, rounded, np.ceil(amount)).astype(np.int64)
    nearest = round(amount)
    if abs(amount - nearest) <= 1e-12 * max(1.0, abs(amount)):
        return nearest
    return int(-(-amount // 1))
