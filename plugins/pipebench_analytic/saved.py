"""What the forward keeps for the backward, charged so that no tensor counts twice."""

from dataclasses import dataclass

from pipebench.domain.graph import OperatorGraph
from pipebench_analytic.kinds import kind_of

DEFINITION = (
    "tensors that the backward reads, each charged once: to the first operator that reads it and needs it for its "
    "backward, else to its producer where that needs it; besides them attention's query, key, value, context and "
    "softmax, indices of max pooling, statistics of layer norms"
)


@dataclass(frozen=True, slots=True)
class Saved:
    """Bytes for one sample. inputs: tensors it reads. own: its output or internal results."""

    inputs: float
    own: float


def saved_bytes(graph: OperatorGraph, element_bytes: int) -> tuple[Saved, ...]:
    """What each operator is charged, in the order of the graph."""
    inputs = [0.0] * len(graph.operators)
    own = [0.0] * len(graph.operators)
    kinds = [kind_of(operator) for operator in graph.operators]
    turn = {operator: turn for turn, operator in enumerate(graph.topological)}
    for tensor, described in enumerate(graph.tensors):
        needing = [reader for reader in graph.consumers[tensor] if kinds[reader].reads_inputs]
        producer = graph.producers[tensor]
        if needing:
            inputs[min(needing, key=turn.__getitem__)] += described.forward_bytes_per_sample
        elif producer >= 0 and kinds[producer].reads_output:
            own[producer] += described.forward_bytes_per_sample
    for position, (operator, kind) in enumerate(zip(graph.operators, kinds, strict=True)):
        if kind.extra_bytes is not None:
            own[position] += kind.extra_bytes(operator, element_bytes)
    return tuple(map(Saved, inputs, own))
