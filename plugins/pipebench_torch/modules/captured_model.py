"""A captured module whose operators can be run: by the profiler, and by the stages of a plan."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node, map_arg
from torch.utils._pytree import tree_leaves, tree_map_only

from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench_torch.modules.capture import (
    CapturedProgram,
    Group,
    export,
    graph_of,
    group_nodes,
    in_format,
    turn_dropout_off,
    without_gradients,
)
from pipebench_torch.modules.catalog import Source
from pipebench_torch.modules.models import random_values

PROBED = (2, 3)
"""Numbers of samples from which bytes of a sample follow."""


class CapturedModel:
    """A captured module, run operator by operator. Operators are groups of nodes.

    A program is exported for each number of samples that is used.

    device: where constants are made. Values of weights follow from their names.
    """

    def __init__(self, source: Source, group: Group, depth: int, dtype: torch.dtype, seed: int = 0) -> None:
        """Raises PipebenchError when the module cannot be captured."""
        self.source, self.group, self.depth, self.dtype, self.seed = source, group, depth, dtype, seed
        self._captured = dtype
        self.device = torch.device("cpu")
        self._programs: dict[int, CapturedProgram] = {}
        self._groups: dict[int, list[list[Node]]] = {}
        self._constants: dict[tuple[int, str], Tensor] = {}
        self._placed: dict[Node, Any] = {}
        self.graph: OperatorGraph = self._graph()

    def _graph(self) -> OperatorGraph:
        small, large = PROBED
        return graph_of(self.source, self.program(small), self.program(large), self.group, self.depth)

    def in_format(self, dtype: torch.dtype) -> "CapturedModel":
        """The same graph in another number format, also in nodes that name a format."""
        other = copy(self)
        other.dtype = dtype
        other._constants, other._placed = {}, {}
        return other

    def _format(self, named: torch.dtype) -> torch.dtype:
        return self.dtype if named.is_floating_point and self.dtype != self._captured else named

    def program(self, samples: int) -> CapturedProgram:
        """The program for so many samples."""
        if samples not in self._programs:
            made = export(self.source, samples, self._captured)
            known = next(iter(self._programs.values()), None)
            if known is not None and [n.name for n in known.nodes] != [n.name for n in made.nodes]:
                raise PipebenchError(f"{self.source.name}: its graph is another one for {samples} samples")
            self._programs[samples] = made
        return self._programs[samples]

    @cached_property
    def _shapes(self) -> dict[str, torch.Size]:
        program = self.program(PROBED[0])
        by_placeholder = {node.name: node for node in program.nodes}
        return {name: by_placeholder[place].meta["val"].shape for place, name in program.parameters.items()}

    def weight(self, name: str, device: torch.device | None = None) -> Tensor:
        """Small normal numbers; scales and shifts (one axis) around 1 and 0."""
        shape = self._shapes[name]
        mean = 1.0 if len(shape) == 1 and name.endswith("weight") else 0.0
        return random_values(shape, name, self.seed, device, dtype=self.dtype, deviation=0.02, mean=mean)

    def input(self, tensor: int, samples: int) -> Tensor:
        """Random numbers for a float input, zeros for ids."""
        name = self.graph.tensors[tensor].name
        shape, kind = self._value(name, PROBED[0]).shape, self._value(name, PROBED[0]).dtype
        if not kind.is_floating_point:
            return torch.zeros(samples, *shape[1:], dtype=kind)
        return random_values((samples, *shape[1:]), name, self.seed, dtype=self.dtype)

    def buffer(self, tensor: int, samples: int) -> Tensor:
        """Room for a tensor of the graph."""
        value = self._value(self.graph.tensors[tensor].name, samples)
        return torch.empty(value.shape, dtype=self.dtype if value.dtype.is_floating_point else value.dtype)

    def _value(self, name: str, samples: int) -> Tensor:
        found: Tensor = next(node for node in self.program(samples).nodes if node.name == name).meta["val"]
        return found

    def groups(self, samples: int) -> list[list[Node]]:
        """The nodes of each operator."""
        if samples not in self._groups:
            self._groups[samples] = group_nodes(self.program(samples), self.group, self.depth)
        return self._groups[samples]

    def ready(self, samples: int) -> None:
        """Export the program for this number of samples now, and not inside a measurement."""
        self.groups(samples)

    def run(
        self,
        operator: int,
        values: Mapping[int, Tensor],
        weights: Mapping[str, Tensor],
        first: int,
        groups: Sequence[int],
    ) -> dict[int, Tensor]:
        """The tensors that an operator makes. Raises PipebenchError where samples would be normalised in parts."""
        del first
        samples = sum(groups)
        program = self.program(samples)
        if len(groups) > 1 and "batch_norm" in self.graph.operators[operator].kind:
            raise PipebenchError("batch statistics of a captured module follow one micro-batch size only")
        made: dict[str, Any] = {}
        index = self.graph.tensor_index

        def value(node: Node) -> Any:
            if node.name in made:
                return made[node.name]
            if node.name in program.parameters:
                return weights[program.parameters[node.name]]
            if node.name in index and index[node.name] in values:
                return values[index[node.name]]
            if node.name in program.constants:
                return self._constant(node)
            raise PipebenchError(f"node {node.name!r} is not there yet")

        for node in self.groups(samples)[operator]:
            made[node.name] = self._call(node, value)
        wanted = self.graph.outputs[operator]
        return {tensor: made[self.graph.tensors[tensor].name] for tensor in wanted}

    def _call(self, node: Node, value: Any) -> Any:
        """Run a node of the graph on this device and in this format, not in those of the capture."""
        if node not in self._placed:
            called: Any = (node.args, dict(node.kwargs))
            called = tree_map_only(torch.device, lambda _: self.device, called)
            self._placed[node] = tree_map_only(torch.dtype, self._format, called)
        arguments, settings = map_arg(self._placed[node], value)
        if without_gradients(node):
            with torch.no_grad():
                return _pure(node.target)(*arguments, **settings)
        return _pure(node.target)(*arguments, **settings)

    def whole(self, samples: int, weights: dict[str, Tensor]) -> Callable[[], list[Tensor]]:
        """The module itself (not its graph) with these weights, as a function without arguments to its outputs."""
        device = self.device
        with torch.device("meta"):
            module = self.source.build().train()
        in_format(module, self.dtype)
        turn_dropout_off(module)
        _hold(module, weights, device)
        graph = self.graph
        inputs = {
            graph.tensors[tensor].name: self.input(tensor, samples).to(device)
            for tensor, producer in enumerate(graph.producers)
            if producer < 0
        }

        def forward() -> list[Tensor]:
            outputs = [each for each in tree_leaves(_plain(module(**inputs))) if isinstance(each, Tensor)]
            return [each for each in outputs if each.requires_grad]

        return forward

    def _constant(self, node: Node) -> Tensor:
        """A buffer. Its values are made up: zeros where they may be positions."""
        like: Tensor = node.meta["val"]
        key = (len(like.shape), node.name)
        if key not in self._constants:
            fill = torch.ones if like.dtype.is_floating_point else torch.zeros
            kind = self.dtype if like.dtype.is_floating_point else like.dtype
            self._constants[key] = fill(like.shape, dtype=kind, device=self.device)
        return self._constants[key]


def _hold(module: nn.Module, weights: Mapping[str, Tensor], device: torch.device) -> None:
    """Put these weights with their gradients into a module that has none yet, without a copy.

    Parameters of other names become zero, buffers 1, or 0 where they may be positions. Tied parameters stay tied.
    """
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    held: dict[int, nn.Parameter] = {}
    for each in module.modules():
        for key, parameter in each._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in held:
                weight = weights.get(names[id(parameter)])
                data = torch.zeros_like(parameter, device=device) if weight is None else weight.data
                held[id(parameter)] = nn.Parameter(data, requires_grad=data.is_floating_point())
                held[id(parameter)].grad = None if weight is None else weight.grad
            each._parameters[key] = held[id(parameter)]
        for key, buffer in each._buffers.items():
            if buffer is not None:
                fill = 1 if buffer.dtype.is_floating_point else 0
                each._buffers[key] = torch.full_like(buffer, fill, device=device)


def _plain(output: Any) -> Any:
    """The output of a module as a tree of plain containers; transformers' outputs are mappings."""
    if isinstance(output, Mapping):
        return {key: _plain(value) for key, value in output.items()}
    return tuple(map(_plain, output)) if isinstance(output, list | tuple) else output


def _pure(target: Any) -> Any:
    """The operator that makes a new tensor instead of working in place: a graph is run by the names of its
    tensors.
    """
    name = getattr(target, "_opname", "")
    if not name.endswith("_") or name.endswith("__"):
        return target
    return getattr(getattr(torch.ops.aten, name[:-1]), target._overloadname, target)
