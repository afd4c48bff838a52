"""The operator graph of a PipeDream graph.txt."""

import re
from collections.abc import Sequence

from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.formats.pipedream_lines import Edge, Node

KINDS = {
    "AdaptiveAvgPool2d": "average_pool",
    "AvgPool2d": "average_pool",
    "BatchNorm2d": "batch_norm",
    "Conv2d": "conv2d",
    "MaxPool2d": "max_pool",
}
"""Kinds whose name is not the lower-case name of the module."""


def is_input(node: Node) -> bool:
    """Whether a node is the data loader."""
    return re.fullmatch(r"Input\d*", node.description) is not None


def build_graph(
    name: str, kept: Sequence[Node], inputs: Sequence[Node], edges: Sequence[Edge], batch: int
) -> OperatorGraph:
    """Operators in the order of the trace, one tensor each; an operator that no input reaches is constant.

    kept: nodes that become operators; inputs: nodes that become inputs of the model.
    Raises InvalidValue for a cycle.
    """
    kept = sorted(kept, key=_trace_order)
    names = {node.identifier for node in kept}
    reads: dict[str, list[str]] = {node.identifier: [] for node in kept}
    for edge in edges:
        if edge.target in names:
            reads[edge.target].append(edge.source)
    fed = _reached({node.identifier for node in inputs}, reads)
    operators = tuple(
        Operator(
            name=node.identifier,
            kind=_kind(node.description),
            inputs=tuple(f"{before}.out" for before in reads[node.identifier]),
            parameters=(f"{node.identifier}.parameters",) if node.parameter_bytes else (),
            attributes={} if node.stage is None else {"stage_id": node.stage},
            constant=bool(inputs) and node.identifier not in fed,
        )
        for node in kept
    )
    return OperatorGraph(
        name=name,
        operators=operators,
        tensors=(
            *(_tensor(node, None, batch) for node in inputs),
            *(_tensor(node, node.identifier, batch) for node in kept),
        ),
        parameters=tuple(
            Parameter(name=f"{node.identifier}.parameters", bytes=round(node.parameter_bytes))
            for node in kept
            if node.parameter_bytes
        ),
    )


def _tensor(node: Node, producer: str | None, batch: int) -> Tensor:
    size = sum(node.activation_bytes) / batch
    return Tensor(
        name=f"{node.identifier}.out",
        producer=producer,
        forward_bytes_per_sample=size,
        gradient_bytes_per_sample=size if producer else 0.0,
    )


def _trace_order(node: Node) -> tuple[int, int, str]:
    """Nodes are numbered as they were traced; the file lists them in no order."""
    number = re.fullmatch(r"node(\d{1,18})", node.identifier, re.ASCII)
    return (0, int(number[1]), "") if number else (1, node.line, node.identifier)


def _kind(description: str) -> str:
    module = re.match(r"\w+", description)
    return KINDS.get(module[0], module[0].strip("_").lower() or "operator") if module else "operator"


def _reached(starts: set[str], reads: dict[str, list[str]]) -> set[str]:
    """Everything that depends on one of `starts`, these included."""
    import networkx  # only these files need it

    graph = networkx.DiGraph((before, reader) for reader, sources in reads.items() for before in sources)
    graph.add_nodes_from(starts)
    return starts.union(*(networkx.descendants(graph, start) for start in starts))
