"""Array assignment inside kernels, by hand: numba takes seconds to compile that of slices."""

from typing import Any

from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel


@kernel
def assign(target: NDArray[Any], source: NDArray[Any]) -> None:
    """`target[: len(source)] = source` for C-contiguous arrays that differ in length only."""
    to, of = target.reshape(-1), source.reshape(-1)
    for at in range(of.size):
        to[at] = of[at]
