"""Compiled kernels: numba with an on-disk cache, or without one where no folder can be written."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from pipebench.algorithms.kernel_stamp import stamp

F = TypeVar("F", bound=Callable[..., object])
COMPILES = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether kernels are compiled; with NUMBA_DISABLE_JIT=1 Python runs them."""


def kernel(function: F) -> F:
    """Compile on first call; cached on disk beside the source, else in the user's cache, else not at all.

    What is cached counts no longer once a source that the kernel is compiled from has changed, see kernel_stamp.
    """
    if not COMPILES:
        return function
    try:
        compiled: Any = numba.njit(cache=True)(function)
        index = compiled._cache._cache_file
        index._source_stamp = (index._source_stamp, stamp(function.__module__))
    except (RuntimeError, AttributeError):
        compiled = numba.njit(function)
    return cast(F, compiled)


def can_keep_kernels() -> bool:
    """Whether this machine has a folder where compiled kernels are kept from run to run."""
    try:
        numba.njit(cache=True)(_nothing)
    except RuntimeError:
        return False
    return True


def _nothing() -> None:
    """What `can_keep_kernels` tries; never compiled."""
