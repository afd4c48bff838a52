"""A graph at another precision, and a profile of larger or smaller inputs."""

import msgspec
from msgspec.structs import replace

from pipebench.costs.shapes.transformer import EMBEDDING
from pipebench.domain.graph import OperatorGraph, Tensor
from pipebench.domain.profile import ELEMENT_BYTES, Alternative, OperatorCosts, Precision, Profile


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


def scale_profile(profile: Profile, factor: float) -> Profile:
    """Times and activations times `factor`; parameters as they are.

    What a convolutional network costs at another image size, nearly: factor is the ratio of pixels. The last
    layers, behind the pooling of the whole image, are scaled too (they weigh little).
    """
    if factor == 1.0:
        return profile
    graph = replace(
        profile.graph,
        tensors=tuple(
            replace(
                tensor,
                forward_bytes_per_sample=tensor.forward_bytes_per_sample * factor,
                gradient_bytes_per_sample=tensor.gradient_bytes_per_sample * factor,
            )
            for tensor in profile.graph.tensors
        ),
    )
    costs = tuple(
        replace(device, operators=tuple(_operator(operator, factor) for operator in device.operators))
        for device in profile.costs
    )
    note = f"times and activations scaled by {factor:.6g}"
    provenance = replace(profile.provenance, notes=(*profile.provenance.notes, note))
    return replace(profile, graph=graph, costs=costs, provenance=provenance)


def _operator(operator: OperatorCosts, factor: float) -> OperatorCosts:
    return replace(
        operator,
        forward_s=_times(operator.forward_s, factor),
        backward_s=_times(operator.backward_s, factor),
        weight_gradient_s=_times(operator.weight_gradient_s, factor),
        saved_bytes_per_sample=operator.saved_bytes_per_sample * factor,
        alternatives=tuple(_alternative(alternative, factor) for alternative in operator.alternatives),
    )


def _alternative(alternative: Alternative, factor: float) -> Alternative:
    return replace(
        alternative,
        forward_s=_times(alternative.forward_s, factor),
        backward_s=_times(alternative.backward_s, factor),
        saved_bytes_per_sample=alternative.saved_bytes_per_sample * factor,
        collective_bytes=alternative.collective_bytes * factor,
        transient_bytes_per_sample=alternative.transient_bytes_per_sample * factor,
        forward_collective_s=_times(alternative.forward_collective_s, factor),
        backward_collective_s=_times(alternative.backward_collective_s, factor),
    )


def _times(seconds: tuple[float, ...], factor: float) -> tuple[float, ...]:
    return tuple(each * factor for each in seconds)
