"""Weights, inputs and loss that depend on names and sample numbers only: every process makes the same ones."""

from math import prod, sqrt
from zlib import crc32

import torch
from torch import Tensor

from pipebench.domain.graph import Operator, OperatorGraph

ENTRIES = "entries"
"""The dim of an embedding's table."""


def _draw(name: str, seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(crc32(name.encode()) + (seed << 32))


def weight(graph: OperatorGraph, name: str, seed: int, dtype: torch.dtype) -> Tensor:
    """A parameter in its own shape: normal, of variance 1 / fan-in; scales of normalisations around 1."""
    user = next(op for op in graph.operators if name in op.parameters)
    shape = weight_shape(graph, user, name)
    values = torch.randn(shape, generator=_draw(name, seed))
    if len(shape) > 1:
        values /= sqrt(prod(shape) / shape[_out_axis(user, name)])
    else:
        values = 0.1 * values + (0.0 if name.endswith("bias") else 1.0)
    return values.to(dtype)


def weight_shape(graph: OperatorGraph, user: Operator, name: str) -> tuple[int, ...]:
    """The shape of a parameter from the dims that its axes span; flat where they are not said."""
    axes = user.axes.get(name)
    if axes:
        return tuple(user.dims[axis] for axis in axes)
    return (graph.parameter_bytes[name] // 4,)


def _out_axis(user: Operator, name: str) -> int:
    return 1 if user.axes[name][0] in ("in_features", ENTRIES) else 0


def model_input(graph: OperatorGraph, tensor: int, samples: int, seed: int, dtype: torch.dtype) -> Tensor:
    """An input of the model for a whole mini-batch, flat: ids for a table, else normal numbers."""
    described = graph.tensors[tensor]
    draw = _draw(described.name, seed)
    reader = graph.operators[graph.consumers[tensor][0]]
    if reader.kind == "embedding":
        return torch.randint(reader.dims[ENTRIES], (samples, reader.dims["lookups"]), generator=draw)
    elements = input_elements(graph, tensor)
    return torch.randn(samples, elements, generator=draw).to(dtype)


def input_elements(graph: OperatorGraph, tensor: int) -> int:
    """Elements of one sample of a tensor: models describe their graphs with 4 or 2 bytes an element."""
    return round(graph.tensors[tensor].forward_bytes_per_sample / element_bytes(graph))


def element_bytes(graph: OperatorGraph) -> int:
    """Bytes of an element, from the first parameter whose shape is known; 4 where there is none."""
    for operator in graph.operators:
        for name in operator.parameters:
            if operator.axes.get(name):
                return graph.parameter_bytes[name] // prod(operator.dims[axis] for axis in operator.axes[name])
    return 4


def loss_of(output: Tensor, mini_batch: int) -> Tensor:
    """What an output of the model adds to the loss: half its mean square, over the mini-batch."""
    if output.dtype.is_complex or not output.dtype.is_floating_point:
        raise TypeError("a loss needs real numbers")
    elements = output.numel() // max(output.shape[0], 1)
    return (
        0.5
        * (output.float() if output.dtype != torch.float64 else output).square().sum()
        / (elements * mini_batch)
    )


def learnt_from(graph: OperatorGraph, tensor: int, value: Tensor) -> bool:
    """Whether a tensor that comes from elsewhere gets a gradient: from another stage, or from what the graph says
    stands before the model (an embedding that it leaves out).
    """
    return graph.tensors[tensor].gradient_bytes_per_sample > 0 and value.is_floating_point()
