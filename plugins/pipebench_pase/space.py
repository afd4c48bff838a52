"""Configurations: into how many parts each dim of an operator's iteration space is cut."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Space:
    """sizes: dims, `batch` first. configurations: parts of each dim, shape (configurations, dims)."""

    sizes: Mapping[str, int]
    configurations: IntArray

    @cached_property
    def column(self) -> dict[str, int]:
        """Dim to its column of the configurations."""
        return {dim: position for position, dim in enumerate(self.sizes)}

    @cached_property
    def devices(self) -> FloatArray:
        """Devices that each configuration uses."""
        return self.parts(self.sizes)

    def parts(self, dims: Iterable[str]) -> FloatArray:
        """For each configuration the product of the parts of these dims."""
        found = np.ones(len(self.configurations))
        for dim in dims:
            found *= self.configurations[:, self.column[dim]]
        return found

    def local(self, dims: Iterable[str]) -> FloatArray:
        """For each configuration the product of what one device has of these dims."""
        dims = tuple(dims)
        whole = 1.0
        for dim in dims:
            whole *= self.sizes[dim]
        return whole / self.parts(dims)

    def split(self, number: int) -> dict[str, int]:
        """One configuration as the plan writes it: the dims that are cut."""
        parts = (int(each) for each in self.configurations[number])
        return {dim: cut for dim, cut in zip(self.sizes, parts, strict=True) if cut > 1}

    def number(self, split: Mapping[str, int]) -> int | None:
        """The configuration that cuts so, if it is one of them."""
        wanted = [split.get(dim, 1) for dim in self.sizes]
        (found,) = np.nonzero((self.configurations == wanted).all(axis=1))
        return int(found[0]) if len(found) else None


def divisors(size: int) -> list[int]:
    """Ascending."""
    small = [d for d in range(1, int(size**0.5) + 1) if size % d == 0]
    return sorted({*small, *(size // d for d in small)})


def configurations(sizes: Mapping[str, int], whole: Collection[str], devices: int, cutoff: int) -> Space:
    """All configurations on at most `devices` (PaSE, section II; devices may stay idle, as in the prototype).

    A dim is cut into a divisor of its size that leaves at least `cutoff` to each part; those of `whole` and those
    that no divisor suits are not cut.
    """
    found: list[tuple[int, ...]] = [()]
    used = [1]
    for dim, size in sizes.items():
        cuts = [1]
        if dim not in whole:
            cuts = [cut for cut in divisors(size) if cut <= devices and size // cut >= cutoff] or [1]
        both = [
            ((*before, cut), count * cut)
            for before, count in zip(found, used, strict=True)
            for cut in cuts
            if count * cut <= devices
        ]
        found, used = [each for each, _ in both], [count for _, count in both]
    return Space(sizes, np.array(found, np.int64).reshape(len(found), len(sizes)))


def one_configuration(sizes: Mapping[str, int], split: Mapping[str, int]) -> Space:
    """The space of this configuration alone, whatever the cutoff says of it."""
    return Space(sizes, np.array([[split.get(dim, 1) for dim in sizes]], np.int64))
