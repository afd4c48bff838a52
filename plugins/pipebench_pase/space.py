"""Configurations: into how many parts each dim of an operator's iteration space is cut, if at all."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pipebench.domain.graph import Operator, OperatorGraph

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ConfigurationSpace:
    """The configurations of an operator.

    sizes: of the dims, `batch` first.
    configurations: parts of each dim, shape (configurations, dims).
    """

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


def configurations(
    sizes: Mapping[str, int], whole: Collection[str], devices: int, cutoff: int
) -> ConfigurationSpace:
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
    return ConfigurationSpace(sizes, np.array(found, np.int64).reshape(len(found), len(sizes)))


def one_configuration(sizes: Mapping[str, int], split: Mapping[str, int]) -> ConfigurationSpace:
    """The space of this configuration alone, whatever the cutoff says of it."""
    return ConfigurationSpace(sizes, np.array([[split.get(dim, 1) for dim in sizes]], np.int64))


WINDOW = frozenset({"kernel_height", "kernel_width"})


def whole_dims(graph: OperatorGraph, operator: Operator) -> frozenset[str]:
    """What the prototype keeps whole: images of convolutions (their halos), windows of poolings, steps of an LSTM,
    the axis that tensors are joined or taken apart along. Attention as one operator is cut by samples and heads.
    """
    dims = frozenset(operator.dims)
    match operator.kind:
        case "conv2d":
            return dims & {"height", "width"}
        case "max_pool" | "average_pool":
            return dims & WINDOW if "height" in dims else frozenset()
        case "lstm":
            return dims & {"sequence"}
        case "stack" | "unstack":
            return dims & {"parts"}
        case "concat":
            return dims - frozenset.intersection(
                *(_dims_to_keep(graph, operator, name) for name in operator.inputs)
            )
        case "attention":
            return dims - {"heads"}
        case _:
            return frozenset()


def _dims_to_keep(graph: OperatorGraph, operator: Operator, name: str) -> frozenset[str]:
    """Dims of a concat that an input has in their full size."""
    producer = graph.producers[graph.tensor_index[name]]
    axes = operator.axes.get(name, ())
    if producer < 0:
        return frozenset(axes)
    source = graph.operators[producer]
    made = source.axes.get(name, ())
    if len(made) != len(axes):
        return frozenset()
    sizes = [source.dims.get(dim) for dim in made]
    return frozenset(dim for dim, size in zip(axes, sizes, strict=True) if size == operator.dims.get(dim))


def contiguous(operator: Operator, space: ConfigurationSpace) -> ConfigurationSpace:
    """Of a view that merges or parts axes the configurations that cut it into contiguous pieces."""
    if operator.kind != "flatten":
        return space
    sizes = list(space.sizes.values())
    kept = [row for row in range(len(space.configurations)) if _is_contiguous(sizes, space.configurations[row])]
    return ConfigurationSpace(space.sizes, space.configurations[kept])


def _is_contiguous(sizes: list[int], parts: object) -> bool:
    """Axes cut to single elements, then one cut in any way, then axes that are whole."""
    cuts = [int(cut) for cut in parts]  # type: ignore[attr-defined]
    first = next((axis for axis, cut in enumerate(cuts) if cut != sizes[axis]), len(cuts))
    return all(cut == 1 for cut in cuts[first + 1 :])
