"""An allocation: stages of a chain, some on GPUs of their own (normal), the others all on the special GPU."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipebench.costs.quantise import IntArray

BoolArray = NDArray[np.bool_]


class Allocation(NamedTuple):
    """Stage i is the layers bounds[i] … bounds[i + 1] - 1; special[i]: it is on the special GPU."""

    bounds: tuple[int, ...]
    special: tuple[bool, ...]

    @property
    def devices(self) -> int:
        """GPUs used."""
        return self.special.count(False) + any(self.special)

    @property
    def arrays(self) -> tuple[IntArray, BoolArray]:
        """As kernels read it."""
        return np.array(self.bounds, np.int64), np.array(self.special, np.bool_)


def normalised(allocation: Allocation) -> Allocation:
    """The same with a lone special stage as a normal one."""
    if allocation.special.count(True) > 1:
        return allocation
    return Allocation(allocation.bounds, (False,) * len(allocation.special))
