"""What a graph.txt operator keeps for its backward: the file does not say, so the reader is told how to count."""

from typing import Literal

from pipebench.domain.graph import OperatorGraph

SavedRule = Literal["boundary", "inputs", "outputs"]

DEFINITIONS: dict[SavedRule, str] = {
    "boundary": (
        "boundary: a layer between two single-tensor cuts keeps what enters it (MadPipe section 4.1: a_{l-1}) "
        "and nothing from inside; its operators are joined to one, because no plan can cut there"
    ),
    "inputs": "inputs: every operator keeps the tensors that it reads",
    "outputs": "outputs: every operator keeps the tensors that it makes",
}


def saved_bytes_per_sample(graph: OperatorGraph, rule: SavedRule) -> list[float]:
    """Bytes that each operator keeps for one sample (`boundary`: before the operators are joined to layers)."""
    size = [tensor.forward_bytes_per_sample for tensor in graph.tensors]
    if rule == "outputs":
        return [sum(size[tensor] for tensor in made) for made in graph.outputs]
    return [sum(size[graph.tensor_index[name]] for name in op.inputs) for op in graph.operators]
