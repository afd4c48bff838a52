"""Compiled kernels: numba with an on-disk cache, or without one where no folder can be written."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])
COMPILES = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether kernels are compiled; with NUMBA_DISABLE_JIT=1 Python runs them."""


def kernel(function: F) -> F:
    """Compile on first call; cached on disk beside the source, else in the user's cache, else not at all."""
    try:
        return cast(F, numba.njit(cache=True)(function))
    except RuntimeError:
        return cast(F, numba.njit(function))


def can_keep_kernels() -> bool:
    """Whether this machine has a folder where compiled kernels are kept from run to run."""
    try:
        numba.njit(cache=True)(_nothing)
    except RuntimeError:
        return False
    return True


def _nothing() -> None:
    """What `can_keep_kernels` tries; never compiled."""
