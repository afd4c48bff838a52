"""OperatorGraph: operators, the tensors between them and the parameters they read. No times."""

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from pipebench.domain.limits import MOST_COUNT
from pipebench.domain.topology import topological_order
from pipebench.domain.value import (
    Value,
    require,
    require_bytes,
    require_count,
    require_name,
    require_unique,
    short,
)

if TYPE_CHECKING:
    import networkx


class Parameter(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A named weight tensor. One parameter may serve several operators (tied embeddings).

    name: what operators call it in their `parameters`.
    bytes: of the weights alone, without gradients and optimizer state.
    expert_bytes: the part of `bytes` that is of experts, where ranks share these out (`Regime.expert_parallel`):
    those of the experts that one rank holds.
    """

    name: str
    bytes: int
    expert_bytes: int = 0

    def __post_init__(self) -> None:
        require_name("a parameter", self.name)
        require_bytes(f"parameter {self.name!r}", bytes=self.bytes, expert_bytes=self.expert_bytes)
        require(self.expert_bytes <= self.bytes, f"parameter {self.name!r}: expert_bytes is more than bytes")


class Tensor(Value, frozen=True, kw_only=True):
    """An activation: what one operator makes and any number read.

    name: what operators call it in their `inputs`.
    producer: the operator that makes it; None for an input of the model.
    forward_bytes_per_sample: bytes of the activation.
    gradient_bytes_per_sample: bytes of its gradient (0 for ids and masks).
    fixed_bytes: bytes added to each message, whatever the micro-batch.
    """

    name: str
    producer: str | None = None
    forward_bytes_per_sample: float
    gradient_bytes_per_sample: float
    fixed_bytes: int = 0

    def __post_init__(self) -> None:
        require_name("a tensor", self.name)
        require_bytes(
            f"tensor {self.name!r}",
            forward_bytes_per_sample=self.forward_bytes_per_sample,
            gradient_bytes_per_sample=self.gradient_bytes_per_sample,
            fixed_bytes=self.fixed_bytes,
        )


class Operator(Value, frozen=True, kw_only=True):
    """One node of the graph.

    name: what plans, tensors and costs call it.
    kind: what it computes (linear, conv2d, …); profilers that compute costs know kinds.
    dims: the named iteration space for one sample ('batch' is reserved and counts samples).
    axes: for each tensor or parameter it touches, the dims that the axes of that tensor span.
    inputs: names of the tensors it reads; what it writes names it as producer.
    parameters: names of the weights it reads.
    attributes: numbers that are no dims (strides, a stage id or colour class of a foreign file).
    layer, path: the layer index and the module it came from, where there is one.
    constant: independent of the model's input (may be cloned into several stages).
    """

    name: str
    kind: str
    dims: dict[str, int] = {}
    axes: dict[str, tuple[str, ...]] = {}
    inputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    attributes: dict[str, int] = {}
    layer: int | None = None
    path: str = ""
    constant: bool = False

    def __post_init__(self) -> None:
        require_name("an operator", self.name)
        require("batch" not in self.dims, f"operator {self.name!r}: dim 'batch' is reserved, it counts samples")
        for dim, size in self.dims.items():
            require_count(f"operator {self.name!r}: dim {dim!r}", size)
        for what, number in (("layer", self.layer), *self.attributes.items()):
            require(
                number is None or abs(number) <= MOST_COUNT,
                f"operator {self.name!r}: {what} is {short(number or 0)}, it must be from -2^31 to 2^31",
            )
        for tensor, dims in self.axes.items():
            for dim in dims:
                require(
                    dim == "batch" or dim in self.dims,
                    f"operator {self.name!r}: axis {dim!r} of {tensor!r} is not one of its dims",
                )


class OperatorGraph(Value, frozen=True, kw_only=True):
    """A directed acyclic graph of operators. Positions in `operators` are the indices used everywhere.

    name: of the model.
    operators: the nodes, each with the names of what it reads.
    tensors: what operators make and read, and the inputs of the model.
    parameters: the weights.
    context_parallel: not there where dims and tensors are those of whole samples; else how many ranks share out
    the sequence of each sample (`Regime.context_parallel`): dims `sequence` and tensors are those of one of them.
    """

    name: str
    operators: tuple[Operator, ...]
    tensors: tuple[Tensor, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    context_parallel: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.context_parallel is not UNSET:
            require_count("context_parallel", self.context_parallel)
        require(len(self.operators) > 0, f"graph {self.name!r} has no operators")
        require_unique("operator", (op.name for op in self.operators))
        require_unique("tensor", (tensor.name for tensor in self.tensors))
        require_unique("parameter", (parameter.name for parameter in self.parameters))
        operators = {op.name for op in self.operators}
        tensors = {tensor.name for tensor in self.tensors}
        parameters = {parameter.name for parameter in self.parameters}
        for tensor in self.tensors:
            require(
                tensor.producer is None or tensor.producer in operators,
                f"tensor {tensor.name!r}: its producer {tensor.producer!r} is not an operator",
            )
        both = sorted(tensors & parameters)
        require(not both, f"{both[:1]} names both a tensor and a parameter")
        for op in self.operators:
            require_unique(f"operator {op.name!r}: input", op.inputs)
            require_unique(f"operator {op.name!r}: parameter", op.parameters)
            for name in op.inputs:
                require(name in tensors, f"operator {op.name!r} reads {name!r}, which is not a tensor")
            for name in op.parameters:
                require(name in parameters, f"operator {op.name!r} uses {name!r}, which is not a parameter")
            for name in op.axes:
                require(
                    name in tensors or name in parameters,
                    f"operator {op.name!r} has axes of {name!r}, which is neither a tensor nor a parameter",
                )
        _ = self.topological
        for position, op in enumerate(self.operators):
            if op.constant:
                for before in self.predecessors[position]:
                    require(
                        self.operators[before].constant,
                        f"operator {op.name!r} is constant but reads what {self.operators[before].name!r} makes",
                    )

    @property
    def context_ranks(self) -> int:
        """How many ranks share out the sequence of each sample."""
        return 1 if self.context_parallel is UNSET else self.context_parallel

    @cached_property
    def index(self) -> dict[str, int]:
        """Operator name to position."""
        return {op.name: position for position, op in enumerate(self.operators)}

    @cached_property
    def tensor_index(self) -> dict[str, int]:
        """Tensor name to position."""
        return {tensor.name: position for position, tensor in enumerate(self.tensors)}

    @cached_property
    def parameter_bytes(self) -> dict[str, int]:
        """Parameter name to its bytes."""
        return {parameter.name: parameter.bytes for parameter in self.parameters}

    @cached_property
    def weight_bytes(self) -> tuple[int, ...]:
        """Bytes of the weights of each operator, in the order of `operators`; each parameter counts once."""
        return tuple(sum(self.parameter_bytes[name] for name in set(each.parameters)) for each in self.operators)

    @cached_property
    def expert_bytes(self) -> dict[str, int]:
        """Parameter name to the part of its bytes that is of experts which ranks share out."""
        return {parameter.name: parameter.expert_bytes for parameter in self.parameters}

    @cached_property
    def expert_weight_bytes(self) -> tuple[int, ...]:
        """The same of each operator, in the order of `operators`."""
        return tuple(sum(self.expert_bytes[name] for name in set(each.parameters)) for each in self.operators)

    @cached_property
    def producers(self) -> tuple[int, ...]:
        """For each tensor the position of its producer; -1 for an input of the model."""
        return tuple(-1 if t.producer is None else self.index[t.producer] for t in self.tensors)

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each tensor the positions of the operators that read it."""
        readers: list[list[int]] = [[] for _ in self.tensors]
        for position, op in enumerate(self.operators):
            for name in op.inputs:
                readers[self.tensor_index[name]].append(position)
        return tuple(map(tuple, readers))

    @cached_property
    def outputs(self) -> tuple[tuple[int, ...], ...]:
        """For each operator the positions of the tensors that it produces."""
        made: list[list[int]] = [[] for _ in self.operators]
        for tensor, producer in enumerate(self.producers):
            if producer >= 0:
                made[producer].append(tensor)
        return tuple(map(tuple, made))

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """For each operator the positions of the operators that read what it produces, ascending."""
        found: list[set[int]] = [set() for _ in self.operators]
        for producer, readers in zip(self.producers, self.consumers, strict=True):
            if producer >= 0:
                found[producer].update(readers)
        return tuple(tuple(sorted(after)) for after in found)

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each operator the positions of the operators whose tensors it reads, ascending."""
        found: list[list[int]] = [[] for _ in self.operators]
        for position, after in enumerate(self.successors):
            for successor in after:
                found[successor].append(position)
        return tuple(map(tuple, found))

    @cached_property
    def topological(self) -> tuple[int, ...]:
        """The topological order that follows the listing as closely as possible.

        Raises InvalidValue with one cycle when there is none.
        """
        return topological_order(self.successors, [op.name for op in self.operators])

    def to_networkx(self) -> "networkx.MultiDiGraph":
        """The graph for networkx: a node for each operator, an edge for each operator that reads a tensor.

        Nodes: operator names, in the order of `operators`.
        Attributes of a node: `position`, and the fields of `Operator` but its name.
        Edges: from producer to reader; the key is the tensor's name.
        Attributes of an edge: `forward_bytes_per_sample`, `gradient_bytes_per_sample`, `fixed_bytes`.
        Attributes of the graph: `name`; `inputs`, the tensors without producer, each with its readers;
        `parameters`, name to bytes.
        A tensor without producer or without reader is no edge.
        """
        import networkx  # no command pays for it at start

        graph = networkx.MultiDiGraph(name=self.name, inputs={}, parameters=dict(self.parameter_bytes))
        for position, op in enumerate(self.operators):
            fields = {name: getattr(op, name) for name in op.__struct_fields__ if name != "name"}
            graph.add_node(op.name, position=position, **fields)
        for tensor, readers in zip(self.tensors, self.consumers, strict=True):
            names = [self.operators[reader].name for reader in readers]
            if tensor.producer is None:
                graph.graph["inputs"][tensor.name] = names
                continue
            for name in names:
                graph.add_edge(
                    tensor.producer,
                    name,
                    key=tensor.name,
                    forward_bytes_per_sample=tensor.forward_bytes_per_sample,
                    gradient_bytes_per_sample=tensor.gradient_bytes_per_sample,
                    fixed_bytes=tensor.fixed_bytes,
                )
        return graph
