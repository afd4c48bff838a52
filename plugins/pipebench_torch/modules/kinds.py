"""What each operator kind of the project's models computes. Tensors travel flat: (samples, elements of each)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt, prod

import torch
from torch import Tensor
from torch.nn import functional

from pipebench.domain.errors import UnsupportedProblem, nearest
from pipebench.domain.graph import Operator


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator on some samples.

    inputs: (samples, elements) each. weights: by the last part of their names, in their own shapes. first: the
    number of the first sample in its mini-batch. groups: how many samples, in order, are normalised together.
    """

    operator: Operator
    inputs: Sequence[Tensor]
    weights: dict[str, Tensor]
    first: int
    groups: Sequence[int]


Compute = Callable[[OperatorCall], Tensor]


def _rows(x: Tensor, features: int) -> Tensor:
    return x.reshape(x.shape[0], -1, features)


def _image(call: OperatorCall, channels: int) -> Tensor:
    """The first input as (samples, channels, height, width): the window arithmetic, backwards."""
    (x,), dims, attributes = call.inputs, call.operator.dims, call.operator.attributes
    pixels = x.shape[1] // channels
    stride = attributes.get("stride", 1)
    down, across = (attributes.get(f"padding_{way}", attributes.get("padding", 0)) for way in ("height", "width"))
    for more in range(stride):
        height = (dims["height"] - 1) * stride + dims["kernel_height"] - 2 * down + more
        for wider in range(stride):
            width = (dims["width"] - 1) * stride + dims["kernel_width"] - 2 * across + wider
            if height * width == pixels:
                return x.reshape(-1, channels, height, width)
    raise UnsupportedProblem(f"operator {call.operator.name!r}: {pixels} pixels do not fit its windows")


def _padding(operator: Operator) -> tuple[int, int]:
    both = operator.attributes.get("padding", 0)
    return operator.attributes.get("padding_height", both), operator.attributes.get("padding_width", both)


def _linear(call: OperatorCall) -> Tensor:
    (x,), weight = call.inputs, call.weights["weight"]
    if call.operator.axes[_full(call, "weight")][0] == "in_features":
        weight = weight.t()
    return functional.linear(_rows(x, weight.shape[1]), weight, call.weights.get("bias")).flatten(1)


def _full(call: OperatorCall, short: str) -> str:
    return next(name for name in call.operator.parameters if name.rpartition(".")[2] == short)


def _conv2d(call: OperatorCall) -> Tensor:
    weight = call.weights["weight"]
    image = _image(call, weight.shape[1])
    stride = call.operator.attributes.get("stride", 1)
    y = functional.conv2d(image, weight, call.weights.get("bias"), stride, _padding(call.operator))
    written = next(axes for name, axes in call.operator.axes.items() if name.endswith(".out"))
    return (y.flatten(2).transpose(1, 2) if written[-1] == "out_channels" else y).flatten(1)


def _batch_norm(call: OperatorCall) -> Tensor:
    (x,) = call.inputs
    dims = call.operator.dims
    image = x.reshape(-1, dims["channels"], dims["height"], dims["width"])
    parts = image.split(list(call.groups))
    made = [
        functional.batch_norm(part, None, None, call.weights["weight"], call.weights["bias"], training=True)
        for part in parts
    ]
    return (made[0] if len(made) == 1 else torch.cat(made)).flatten(1)


def _layer_norm(call: OperatorCall) -> Tensor:
    (x,), features = call.inputs, call.operator.dims["features"]
    normed = functional.layer_norm(_rows(x, features), (features,), call.weights["weight"], call.weights["bias"])
    return normed.flatten(1)


def _attention(call: OperatorCall) -> Tensor:
    x = _rows(call.inputs[0], call.operator.dims["in_features"])
    query, key, value = (
        torch.einsum("bsi,hdi->bhsd", x, call.weights[name]) for name in ("query", "key", "value")
    )
    mixed = functional.scaled_dot_product_attention(query, key, value)
    return torch.einsum("bhsd,ohd->bso", mixed, call.weights["output"]).flatten(1)


def _concat(call: OperatorCall) -> Tensor:
    dims = call.operator.dims
    if "parts" in dims:
        return torch.cat([_rows(x, dims["features"]) for x in call.inputs], dim=2).flatten(1)
    return torch.cat(list(call.inputs), dim=1)


def _pool(call: OperatorCall, pool: Callable[..., Tensor]) -> Tensor:
    dims = call.operator.dims
    kernel = dims["kernel_height"], dims["kernel_width"]
    if "height" not in dims:
        return functional.avg_pool2d(call.inputs[0].reshape(-1, dims["channels"], *kernel), kernel).flatten(1)
    if "stride" not in call.operator.attributes:
        side = isqrt(call.inputs[0].shape[1] // dims["channels"])
        image = call.inputs[0].reshape(-1, dims["channels"], side, side)
        return functional.adaptive_avg_pool2d(image, (dims["height"], dims["width"])).flatten(1)
    image = _image(call, dims["channels"])
    return pool(image, kernel, call.operator.attributes["stride"], _padding(call.operator)).flatten(1)


def _dropout(call: OperatorCall) -> Tensor:
    """Dropout whose mask depends on the sample's number only, so that every cut of the model drops the same."""
    (x,) = call.inputs
    seed = sum(map(ord, call.operator.name))
    draw = torch.Generator()
    kept = []
    for sample in range(call.first, call.first + x.shape[0]):
        draw.manual_seed(seed * 1_000_003 + sample)
        kept.append(torch.rand(x.shape[1], generator=draw) >= 0.5)
    return x * torch.stack(kept).to(x.device) * 2


def _embedding(call: OperatorCall) -> Tensor:
    return functional.embedding(call.inputs[0], call.weights["weight"]).flatten(1)


def _positions(call: OperatorCall) -> Tensor:
    x = _rows(call.inputs[0], call.operator.dims["features"])
    if "tokens" in call.weights:
        x = torch.cat([call.weights["tokens"].expand(x.shape[0], -1, -1), x], dim=1)
    return (x + call.weights["positions"]).flatten(1)


def _similarity(call: OperatorCall) -> Tensor:
    one, other = (functional.normalize(x, dim=1) for x in call.inputs)
    return call.weights["scale"] * (one * other).sum(dim=1, keepdim=True)


def _add(call: OperatorCall) -> Tensor:
    one, other = call.inputs if len(call.inputs) == 2 else (call.inputs[0], call.inputs[0])
    return one + other


KINDS: dict[str, Compute] = {
    "add": _add,
    "attention": _attention,
    "average_pool": lambda call: _pool(call, functional.avg_pool2d),
    "batch_norm": _batch_norm,
    "concat": _concat,
    "conv2d": _conv2d,
    "dropout": _dropout,
    "embedding": _embedding,
    "flatten": lambda call: call.inputs[0][:, : prod(call.operator.dims.values())],
    "layer_norm": _layer_norm,
    "linear": _linear,
    "max_pool": lambda call: _pool(call, functional.max_pool2d),
    "positions": _positions,
    "relu": lambda call: torch.relu(call.inputs[0]),
    "similarity": _similarity,
}


def compute_of(operator: Operator) -> Compute:
    """How an operator is computed. Raises UnsupportedProblem with the kinds that are known."""
    if operator.kind not in KINDS:
        raise UnsupportedProblem(
            f"operator {operator.name!r}: kind {operator.kind!r} has no implementation in torch",
            nearest(operator.kind, KINDS),
        )
    return KINDS[operator.kind]
