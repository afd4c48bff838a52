"""Write a model like its definition: each call adds an operator and returns the activation that it makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor

ELEMENT_BYTES = 4
"""Models describe their graphs in fp32; profilers convert (pipebench.costs.shapes.rescale)."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A tensor of the graph and its shape for one sample."""

    name: str
    shape: tuple[int, ...]


class GraphBuilder:
    """Collects operators, tensors and parameters. `layer` and `path` mark the operators added next."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.layer: int | None = None
        self._operators: list[Operator] = []
        self._tensors: list[Tensor] = []
        self._parameters: dict[str, Parameter] = {}

    def input(self, name: str, *shape: int, gradient: bool = False) -> Activation:
        """An input of the model. gradient: something before the model learns from its gradient."""
        return self._tensor(name, None, shape, gradient)

    def operator(
        self,
        name: str,
        kind: str,
        dims: Mapping[str, int],
        inputs: Mapping[Activation, tuple[str, ...]],
        output: tuple[str, ...],
        *,
        parameters: Mapping[str, tuple[str, ...]] | None = None,
        attributes: Mapping[str, int] | None = None,
        shape: tuple[int, ...] | None = None,
        path: str | None = None,
        shared: Mapping[str, tuple[str, ...]] | None = None,
        gradient: bool = True,
    ) -> Activation:
        """Add one operator with one output, `name`.out. See `several`."""
        (made,) = self.several(
            name,
            kind,
            dims,
            inputs,
            output,
            ("out",),
            parameters=parameters,
            attributes=attributes,
            shape=shape,
            path=path,
            shared=shared,
            gradient=gradient,
        )
        return made

    def several(
        self,
        name: str,
        kind: str,
        dims: Mapping[str, int],
        inputs: Mapping[Activation, tuple[str, ...]],
        output: tuple[str, ...],
        made: Sequence[str],
        *,
        parameters: Mapping[str, tuple[str, ...]] | None = None,
        attributes: Mapping[str, int] | None = None,
        shape: tuple[int, ...] | None = None,
        path: str | None = None,
        shared: Mapping[str, tuple[str, ...]] | None = None,
        gradient: bool = True,
    ) -> tuple[Activation, ...]:
        """Add one operator with outputs `made`, all of one shape.

        inputs, parameters: name to the dims that its axes span, batch left out for inputs; a parameter has the
        size that its dims say. output: dims of the output; its shape follows from them unless given. shared:
        the same for parameters of operators before, by their full names. gradient: whether the outputs have one.
        """
        parameters = parameters or {}
        outputs = [f"{name}.{short}" for short in made]
        full_names = {f"{name}.{short}": axes for short, axes in parameters.items()}
        axes = {read.name: ("batch", *spanned) for read, spanned in inputs.items()}
        axes |= full_names | dict.fromkeys(outputs, ("batch", *output))
        for parameter, spanned in full_names.items():
            elements = prod(dims[dim] for dim in spanned)
            self._parameters[parameter] = Parameter(name=parameter, bytes=ELEMENT_BYTES * elements)
        axes |= shared or {}
        self._operators.append(
            Operator(
                name=name,
                kind=kind,
                dims=dict(dims),
                axes=axes,
                inputs=tuple(read.name for read in inputs),
                parameters=(*full_names, *(shared or {})),
                attributes=dict(attributes or {}),
                layer=self.layer,
                path=name if path is None else path,
            )
        )
        shape = shape or tuple(dims[dim] for dim in output)
        return tuple(self._tensor(tensor, name, shape, gradient) for tensor in outputs)

    def graph(self) -> OperatorGraph:
        """All that was added."""
        return OperatorGraph(
            name=self.name,
            operators=tuple(self._operators),
            tensors=tuple(self._tensors),
            parameters=tuple(self._parameters.values()),
        )

    def _tensor(self, name: str, producer: str | None, shape: tuple[int, ...], gradient: bool) -> Activation:
        size = float(ELEMENT_BYTES * prod(shape))
        self._tensors.append(
            Tensor(
                name=name,
                producer=producer,
                forward_bytes_per_sample=size,
                gradient_bytes_per_sample=size if gradient else 0.0,
            )
        )
        return Activation(name, shape)
