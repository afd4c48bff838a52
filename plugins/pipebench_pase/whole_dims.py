"""Dims of an operator that are never cut."""

from pipebench.domain.graph import Operator, OperatorGraph
from pipebench_pase.space import Space

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
            return dims - frozenset.intersection(*(_kept(graph, operator, name) for name in operator.inputs))
        case "attention":
            return dims - {"heads"}
        case _:
            return frozenset()


def _kept(graph: OperatorGraph, operator: Operator, name: str) -> frozenset[str]:
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


def contiguous(operator: Operator, space: Space) -> Space:
    """Of a view that merges or parts axes the configurations that cut it into contiguous pieces."""
    if operator.kind != "flatten":
        return space
    sizes = list(space.sizes.values())
    kept = [row for row in range(len(space.configurations)) if _is_contiguous(sizes, space.configurations[row])]
    return Space(space.sizes, space.configurations[kept])


def _is_contiguous(sizes: list[int], parts: object) -> bool:
    """Axes cut to single elements, then one cut in any way, then axes that are whole."""
    cuts = [int(cut) for cut in parts]  # type: ignore[attr-defined]
    first = next((axis for axis, cut in enumerate(cuts) if cut != sizes[axis]), len(cuts))
    return all(cut == 1 for cut in cuts[first + 1 :])
