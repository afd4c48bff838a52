"""A model that stages can be cut from: its operators as calls of torch."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from pipebench.domain.graph import OperatorGraph
from pipebench_torch.modules.kinds import Call, compute_of
from pipebench_torch.modules.values import input_elements, model_input, weight

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Model(Protocol):
    """Operators by position, tensors by position, parameters by name."""

    graph: OperatorGraph
    dtype: torch.dtype

    def weight(self, name: str) -> Tensor:
        """The first value of a parameter, the same in every process."""

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

    def weight(self, name: str) -> Tensor:
        return weight(self.graph, name, self.seed, self.dtype)

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
        call = Call(
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
