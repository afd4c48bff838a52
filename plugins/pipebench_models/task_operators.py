"""Operators as small as the tasks of a traced program: one for each tensor operation (RaNNC, section III-A)."""

from collections.abc import Mapping

from pipebench_models.graph_builder import Activation, GraphBuilder

Axes = tuple[str, ...]


def elementwise(
    graph: GraphBuilder, name: str, kind: str, *inputs: Activation, axes: Axes, gradient: bool = True
) -> Activation:
    """One pass over activations; the output has the shape of the first, whose axes are named `axes`.

    Others may be narrower: they span the last of these axes, and where a side is 1 they span less.
    """
    dims = dict(zip(axes, inputs[0].shape, strict=True))
    read = {each: _spanned(each, dims) for each in inputs}
    return graph.operator(name, kind, dims, read, axes, path=name.rpartition(".")[0], gradient=gradient)


def bias(graph: GraphBuilder, name: str, x: Activation, axes: Axes, kind: str = "bias") -> Activation:
    """x + b (or x * w, kind `gain`) with one parameter a feature; the last axis is the features'."""
    dims = dict(zip(axes, x.shape, strict=True))
    path = name.rpartition(".")[0]
    return graph.operator(name, kind, dims, {x: axes}, axes, parameters={"weight": axes[-1:]}, path=path)


def weights(graph: GraphBuilder, name: str, x: Activation, features: int, tied: str = "") -> Activation:
    """x W over the last axis, no bias. tied: the parameter of another operator to use, (features, in_features)."""
    rows = dict(zip(("sequence",), x.shape[:-1], strict=False))
    axes = ("out_features", "in_features")
    return graph.operator(
        name,
        "linear",
        {**rows, "in_features": x.shape[-1], "out_features": features},
        {x: (*rows, "in_features")},
        (*rows, "out_features"),
        parameters={} if tied else {"weight": axes},
        shared={tied: axes} if tied else {},
        path=name.rpartition(".")[0],
    )


def mean(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """The mean of each token's features, (sequence, 1)."""
    dims = {"sequence": x.shape[0], "features": x.shape[1]}
    return graph.operator(
        name,
        "mean",
        dims,
        {x: ("sequence", "features")},
        ("sequence",),
        shape=(x.shape[0], 1),
        path=name.rpartition(".")[0],
    )


def batched_matmul(
    graph: GraphBuilder,
    name: str,
    dims: Mapping[str, int],
    a: tuple[Activation, Axes],
    b: tuple[Activation, Axes],
    output: Axes,
) -> Activation:
    """The product of two activations, head by head; what is in both and not in the output is summed over."""
    path = name.rpartition(".")[0]
    return graph.operator(name, "matmul", dims, {a[0]: a[1], b[0]: b[1]}, output, path=path)


def moved(
    graph: GraphBuilder, name: str, kind: str, x: Activation, axes: Axes, shape: tuple[int, ...]
) -> Activation:
    """The same elements in another shape or order: `view` and `permute` run no kernel, `copy` does.

    axes: those of the result, of sizes `shape`, by which the elements of x are named too.
    """
    dims = dict(zip(axes, shape, strict=True))
    return graph.operator(name, kind, dims, {x: axes}, axes, path=name.rpartition(".")[0])


def cross_entropy(graph: GraphBuilder, name: str, logits: Activation, labels: Activation) -> Activation:
    """log_softmax and nll_loss over the last axis of logits: one number."""
    rows = dict(zip(("sequence",), logits.shape[:-1], strict=False))
    spanned = (*rows, "classes")
    dims = {**rows, "classes": logits.shape[-1]}
    logs = graph.operator(f"{name}.log_softmax", "softmax", dims, {logits: spanned}, spanned, path=name)
    return graph.operator(
        f"{name}.nll",
        "nll",
        {**dims, "losses": 1},
        {logs: spanned, labels: tuple(rows) or ("losses",)},
        ("losses",),
        path=name,
    )


def _spanned(x: Activation, dims: Mapping[str, int]) -> Axes:
    last = list(dims)[len(dims) - len(x.shape) :]
    return tuple(axis for axis, size in zip(last, x.shape, strict=True) if size == dims[axis])
