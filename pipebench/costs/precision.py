"""A graph's bytes at another precision. Models describe their graphs in fp32, four bytes an element."""

import msgspec

from pipebench.costs.transformer import EMBEDDING
from pipebench.domain.graph import OperatorGraph, Tensor
from pipebench.domain.profile import ELEMENT_BYTES, Precision


def in_precision(graph: OperatorGraph, precision: Precision) -> OperatorGraph:
    """The fp32 graph with tensors and parameters at `precision`.

    A tensor that only embeddings read holds ids, not floats, and keeps its bytes.
    """
    if precision == "fp32":
        return graph
    share = ELEMENT_BYTES[precision] / ELEMENT_BYTES["fp32"]

    def scaled(tensor: Tensor, readers: tuple[int, ...]) -> Tensor:
        if readers and all(graph.operators[reader].kind in ("embedding", EMBEDDING) for reader in readers):
            return tensor
        return msgspec.structs.replace(
            tensor,
            forward_bytes_per_sample=tensor.forward_bytes_per_sample * share,
            gradient_bytes_per_sample=tensor.gradient_bytes_per_sample * share,
            fixed_bytes=round(tensor.fixed_bytes * share),
        )

    return OperatorGraph(
        name=graph.name,
        operators=graph.operators,
        tensors=tuple(map(scaled, graph.tensors, graph.consumers)),
        parameters=tuple(
            msgspec.structs.replace(parameter, bytes=round(parameter.bytes * share))
            for parameter in graph.parameters
        ),
    )
