"""What a graph.txt operator keeps for its backward: the file does not say, so the reader is told how to count."""

from typing import Literal

from pipebench.algorithms.linearise import linearise
from pipebench.domain.graph import OperatorGraph

SavedRule = Literal["boundary", "inputs", "outputs"]

DEFINITIONS: dict[SavedRule, str] = {
    "boundary": (
        "boundary: a layer between two single-tensor cuts keeps what enters it (MadPipe section 4.1: a_{l-1}), "
        "charged to its first operator; tensors inside a layer are not kept"
    ),
    "inputs": "inputs: every operator keeps the tensors that it reads",
    "outputs": "outputs: every operator keeps the tensors that it makes",
}


def saved_bytes_per_sample(graph: OperatorGraph, rule: SavedRule) -> list[float]:
    """Bytes that each operator keeps for one sample."""
    size = [tensor.forward_bytes_per_sample for tensor in graph.tensors]
    if rule == "inputs":
        return [sum(size[graph.tensor_index[name]] for name in op.inputs) for op in graph.operators]
    if rule == "outputs":
        return [sum(size[tensor] for tensor in made) for made in graph.outputs]
    return _boundary(graph, size)


def _boundary(graph: OperatorGraph, size: list[float]) -> list[float]:
    """Each layer's inputs: tensors of earlier layers and inputs of the model, each once."""
    saved = [0.0] * len(graph.operators)
    for layer in linearise(graph).operators:
        own = {tensor for operator in layer for tensor in graph.outputs[operator]}
        read = {graph.tensor_index[name] for operator in layer for name in graph.operators[operator].inputs}
        saved[layer[0]] = sum(size[tensor] for tensor in sorted(read - own))
    return saved
