"""Products of two tensors, and what stands between them, with every dim of the iteration space named.

`pointwise` counts the functions applied to each element of a product (relu, dropout) inside its operator.
"""

from collections.abc import Sequence

from pipebench_models.graph_builder import Activation, GraphBuilder

GATES = ("input", "forget", "cell", "output")


def dense(graph: GraphBuilder, name: str, x: Activation, features: int, pointwise: int = 0) -> Activation:
    """y = x W without bias over the last axis; x is (features,) or (sequence, features)."""
    rows = dict(zip(("sequence",), x.shape[:-1], strict=False))
    return graph.operator(
        name,
        "linear",
        {**rows, "in_features": x.shape[-1], "out_features": features},
        {x: (*rows, "in_features")},
        (*rows, "out_features"),
        parameters={"weight": ("in_features", "out_features")},
        attributes={"pointwise": pointwise} if pointwise else None,
    )


def weighted(
    graph: GraphBuilder,
    name: str,
    x: Activation,
    read: Sequence[str],
    weight: Sequence[str],
    made: Sequence[str],
    sizes: dict[str, int],
) -> Activation:
    """x times a weight, in Einstein's notation: dims of x, of the weight, of the result; sizes of what x lacks."""
    dims = dict(zip(read, x.shape, strict=True)) | sizes
    return graph.operator(
        name, "matmul", dims, {x: tuple(read)}, tuple(made), parameters={"weight": tuple(weight)}
    )


def product(
    graph: GraphBuilder,
    name: str,
    a: Activation,
    of_a: Sequence[str],
    b: Activation,
    of_b: Sequence[str],
    made: Sequence[str],
) -> Activation:
    """The product of two activations, in Einstein's notation."""
    dims = dict(zip((*of_a, *of_b), (*a.shape, *b.shape), strict=True))
    return graph.operator(name, "matmul", dims, {a: tuple(of_a), b: tuple(of_b)}, tuple(made))


def lstm(graph: GraphBuilder, name: str, x: Activation, layers: int) -> Activation:
    """Layers of LSTM cells over a whole sequence as one operator (PaSE, section IV-A); x is (sequence, units).

    `inputs` are contracted, `units` made: 4 gates, each a product with the input and one with the last output.
    """
    sequence, units = x.shape
    each = ("layers", "inputs", "units")
    return graph.operator(
        name,
        "lstm",
        {"layers": layers, "sequence": sequence, "units": units, "inputs": units},
        {x: ("sequence", "inputs")},
        ("sequence", "units"),
        parameters={f"{gate}.{source}": each for gate in GATES for source in ("input", "recurrent")},
        attributes={"pointwise": 3},
    )


def softmax(graph: GraphBuilder, name: str, x: Activation, axes: Sequence[str]) -> Activation:
    """Softmax over the last axis."""
    return graph.operator(name, "softmax", dict(zip(axes, x.shape, strict=True)), {x: tuple(axes)}, tuple(axes))


def cross_entropy(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Softmax and cross-entropy over the last axis; x is (classes,) or (sequence, classes).

    What it makes is the gradient that its own backward starts from, of the size of x.
    """
    axes = ("sequence", "classes")[-len(x.shape) :]
    return graph.operator(name, "cross_entropy", dict(zip(axes, x.shape, strict=True)), {x: axes}, axes)


def stack(
    graph: GraphBuilder, name: str, parts: Sequence[Activation], count: int, axes: Sequence[str]
) -> Activation:
    """`count` tensors of one shape as one with an axis `parts` in front; one read twice stands in `parts` once."""
    shape = dict(zip(axes, parts[0].shape, strict=True))
    return graph.operator(
        name, "stack", {"parts": count} | shape, dict.fromkeys(parts, tuple(axes)), ("parts", *axes)
    )


def unstack(
    graph: GraphBuilder, name: str, x: Activation, axes: Sequence[str], names: Sequence[str]
) -> tuple[Activation, ...]:
    """A tensor cut along its first axis, `parts`, into tensors of these names; `axes` are the others."""
    dims = dict(zip(("parts", *axes), x.shape, strict=True))
    return graph.several(name, "unstack", dims, {x: ("parts", *axes)}, tuple(axes), names)
