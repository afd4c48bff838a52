"""Operators joined to the layers between single-tensor cuts, each of which keeps what enters it."""

from collections.abc import Sequence

from pipebench.algorithms.linearise import linearise
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts


def join_layers(graph: OperatorGraph, costs: DeviceCosts) -> tuple[OperatorGraph, DeviceCosts]:
    """One operator for each layer, with the sums of its operators' times.

    A layer is atomic: what its inner operators keep is not told, so no plan may cut inside it. Tensors that
    stay inside a layer go; parameters and the order of operators stay.
    """
    layers = linearise(graph).operators
    size = {tensor.name: tensor.forward_bytes_per_sample for tensor in graph.tensors}
    joined = [_join(graph, layer) for layer in layers]
    layer_of = {graph.operators[op].name: position for position, layer in enumerate(layers) for op in layer}
    read = {name for operator in joined for name in operator.inputs}
    tensors = tuple(
        tensor
        if tensor.producer is None
        else type(tensor)(
            name=tensor.name,
            producer=joined[layer_of[tensor.producer]].name,
            forward_bytes_per_sample=tensor.forward_bytes_per_sample,
            gradient_bytes_per_sample=tensor.gradient_bytes_per_sample,
        )
        for tensor in graph.tensors
        if tensor.name in read
    )
    merged = OperatorGraph(name=graph.name, operators=tuple(joined), tensors=tensors, parameters=graph.parameters)
    operators = tuple(
        _cost(operator, [costs.operators[op] for op in layer], sum(size[name] for name in operator.inputs))
        for operator, layer in zip(joined, layers, strict=True)
    )
    return merged, DeviceCosts(
        device_type=costs.device_type, micro_batches=costs.micro_batches, operators=operators
    )


def _join(graph: OperatorGraph, layer: Sequence[int]) -> Operator:
    members = [graph.operators[position] for position in layer]
    if len(members) == 1:
        return members[0]
    own = {graph.tensors[tensor].name for position in layer for tensor in graph.outputs[position]}
    inputs = dict.fromkeys(name for member in members for name in member.inputs if name not in own)
    return Operator(
        name=f"{members[0].name}-{members[-1].name}",
        kind="layer",
        inputs=tuple(inputs),
        parameters=tuple(dict.fromkeys(name for member in members for name in member.parameters)),
        constant=all(member.constant for member in members),
    )


def _cost(operator: Operator, members: Sequence[OperatorCosts], kept_bytes: float) -> OperatorCosts:
    return OperatorCosts(
        operator=operator.name,
        forward_s=(sum(member.forward_s[0] for member in members),),
        backward_s=(sum(member.backward_s[0] for member in members),),
        saved_bytes_per_sample=kept_bytes,
    )
