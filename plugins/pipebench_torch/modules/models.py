"""A model that stages can be cut from: its operators as calls of torch; weights, inputs and loss."""

from collections.abc import Mapping, Sequence
from math import prod, sqrt
from typing import Any, Protocol
from zlib import crc32

import torch
from torch import Tensor

from pipebench.domain.graph import Operator, OperatorGraph
from pipebench_torch.modules.kinds import OperatorCall, compute_of

ENTRIES = "entries"
"""The dim of an embedding's table."""


def _draw(name: str, seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(crc32(name.encode()) + (seed << 32))


MOST_DRAWN = 2**22 + 1
"""Numbers of one tensor; one more than a power of two, so that its rows differ where they repeat them."""


def random_values(
    shape: Sequence[int],
    name: str,
    seed: int,
    device: torch.device | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    deviation: float = 1.0,
    mean: float = 0.0,
) -> Tensor:
    """Normal numbers that follow from the name. Those of a large tensor repeat: drawing takes long.

    They are computed on the CPU, whatever the device: a card rounds a product and a sum in another way, and a
    weight has to be the same number everywhere.
    """
    count = prod(shape)
    drawn = torch.randn(min(count, MOST_DRAWN), generator=_draw(name, seed))
    drawn = drawn.mul_(deviation).add_(mean).to(dtype).to(device)
    return drawn.repeat(max(1, -(-count // MOST_DRAWN)))[:count].reshape(tuple(shape))


def weight(
    graph: OperatorGraph, name: str, seed: int, dtype: torch.dtype, device: torch.device | None = None
) -> Tensor:
    """A parameter in its own shape: normal, of variance 1 / fan-in; scales of normalisations around 1."""
    user = next(op for op in graph.operators if name in op.parameters)
    shape = weight_shape(graph, user, name)
    if len(shape) > 1:
        deviation, mean = 1 / sqrt(prod(shape) / shape[_out_axis(user, name)]), 0.0
    else:
        deviation, mean = 0.1, 0.0 if name.endswith("bias") else 1.0
    return random_values(shape, name, seed, device, dtype=dtype, deviation=deviation, mean=mean)


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
    reader = graph.operators[graph.consumers[tensor][0]]
    if reader.kind == "embedding":
        return torch.randint(
            reader.dims[ENTRIES], (samples, reader.dims["lookups"]), generator=_draw(described.name, seed)
        )
    elements = input_elements(graph, tensor)
    return random_values((samples, elements), described.name, seed, dtype=dtype)


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
    """The share of an output of the model in the loss: half its mean square, over the mini-batch."""
    if output.dtype.is_complex or not output.dtype.is_floating_point:
        raise TypeError("a loss needs real numbers")
    elements = output.numel() // max(output.shape[0], 1)
    return (
        0.5
        * (output.float() if output.dtype != torch.float64 else output).square().sum()
        / (elements * mini_batch)
    )


class _Loss(torch.autograd.Function):  # type: ignore[misc]
    """A loss without its number, which a run does not look at: it keeps the output and makes its gradient.

    The gradient is made when the backward comes to it and dropped behind the operator that made the output, as in
    a training loop.
    """

    @staticmethod
    def forward(ctx: Any, output: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(output)
        ctx.scale = scale
        return output.new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        del gradient  # 1
        return ctx.saved_tensors[0] * ctx.scale, None


def loss_to_walk_back(output: Tensor, mini_batch: int) -> Tensor:
    """A scalar from which the backward goes as from `loss_of`; its own value means nothing."""
    elements = output.numel() // max(output.shape[0], 1)
    loss: Tensor = _Loss.apply(output, 1 / (max(elements, 1) * mini_batch))
    return loss


def learnt_from(graph: OperatorGraph, tensor: int, value: Tensor) -> bool:
    """Whether a tensor that comes from elsewhere gets a gradient.

    It does when it comes from another stage, or from what stands before the model (an embedding that the graph
    omits).
    """
    return graph.tensors[tensor].gradient_bytes_per_sample > 0 and value.is_floating_point()


DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class StageableModel(Protocol):
    """Operators by position, tensors by position, parameters by name."""

    graph: OperatorGraph
    dtype: torch.dtype

    def weight(self, name: str, device: torch.device | None = None) -> Tensor:
        """The first value of a parameter, the same in every process. device: where it is made (None: the CPU)."""

    def input(self, tensor: int, samples: int) -> Tensor:
        """An input of the model for a whole mini-batch; samples are its first axis."""

    def buffer(self, tensor: int, samples: int) -> Tensor:
        """Room for so many samples of a tensor."""

    def ready(self, samples: int) -> None:
        """Do what has to be done once for a number of samples."""

    def run(
        self,
        operator: int,
        values: Mapping[int, Tensor],
        weights: Mapping[str, Tensor],
        first: int,
        groups: Sequence[int],
    ) -> dict[int, Tensor]:
        """The tensors that an operator makes of `values`; groups: samples that are normalised together."""


class SyntheticModel:
    """The operators of a graph whose kinds the project knows."""

    def __init__(self, graph: OperatorGraph, seed: int, precision: str) -> None:
        """Raises UnsupportedProblem for a kind without an implementation."""
        self.graph = graph
        self.seed = seed
        self.dtype = DTYPES[precision]
        self._computes = [compute_of(operator) for operator in graph.operators]

    def weight(self, name: str, device: torch.device | None = None) -> Tensor:
        return weight(self.graph, name, self.seed, self.dtype, device)

    def input(self, tensor: int, samples: int) -> Tensor:
        return model_input(self.graph, tensor, samples, self.seed, self.dtype)

    def buffer(self, tensor: int, samples: int) -> Tensor:
        return torch.empty(samples, input_elements(self.graph, tensor), dtype=self.dtype)

    def ready(self, samples: int) -> None:
        """Nothing: shapes follow from the samples."""

    def run(
        self,
        operator: int,
        values: Mapping[int, Tensor],
        weights: Mapping[str, Tensor],
        first: int,
        groups: Sequence[int],
    ) -> dict[int, Tensor]:
        described = self.graph.operators[operator]
        call = OperatorCall(
            operator=described,
            inputs=[values[self.graph.tensor_index[name]] for name in described.inputs],
            weights={name.rpartition(".")[2]: weights[name] for name in described.parameters},
            first=first,
            groups=groups,
        )
        return (
            {self.graph.outputs[operator][0]: self._computes[operator](call)}
            if self.graph.outputs[operator]
            else {}
        )
