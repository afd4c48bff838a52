"""Which numbers of ranks can share out a model's experts, and the graph as one of these ranks holds it."""

from msgspec.structs import replace

from pipebench.costs.shapes.transformer import LAYERS, layer_shape
from pipebench.domain.errors import InvalidValue, nearest_numbers
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Pins
from pipebench.domain.workload import pin_flag


def expert_counts(graph: OperatorGraph) -> list[int]:
    """Experts of each layer that has some, in the order of the graph."""
    shapes = [layer_shape(operator) for operator in graph.operators if operator.kind in LAYERS]
    return [shape.experts for shape in shapes if shape.experts > 1]


def refuse_expert_ranks(
    graph: OperatorGraph, ranks: int, devices: int, pins: Pins, name: str, context: int = 1
) -> None:
    """Raise InvalidValue, with the nearest degrees that are valid, where so many ranks cannot share out a model's
    experts on so many devices.

    They divide the experts of every layer, and a stage has whole groups of them: its replicas times its
    tensor-parallel ranks, which are at most all devices and as many as the pins say. name: of the model. context:
    ranks that share out each sequence, which are among them.
    """
    if ranks == 1:
        return
    counts = expert_counts(graph)
    if not counts:
        raise InvalidValue(
            f"--ep {ranks}: {name} has no experts that ranks could share out",
            "leave --ep out, or name a model with experts, such as mixtral, qwen3_moe or olmoe",
        )
    tensor, data, stages = pins.tensor_parallel, pins.data_parallel, pins.pipeline or 1
    pinned = tensor * data * context if tensor and data else None
    most = pinned or devices - (stages - 1)

    def valid(degree: int) -> bool:
        divides = all(count % degree == 0 for count in counts)
        return divides and degree <= most and (pinned is None or pinned % degree == 0)

    if valid(ranks):
        return
    found = [degree for degree in range(1, max(counts) + 1) if valid(degree)]
    wrong = next((count for count in counts if count % ranks), None)
    if wrong is not None:
        why = f"it does not divide the {wrong} experts of a layer of {name}"
    elif pinned is not None:
        said = " x ".join(
            f"{pin_flag(each)} {getattr(pins, each)}" for each in ("tensor_parallel", "data_parallel")
        )
        said += f" x --cp {context}" if context > 1 else ""
        why = f"{said} make {pinned} ranks of a stage, which is no multiple of it"
    else:
        cut = f" in {stages} stages" if stages > 1 else ""
        why = f"a stage has at most {most} ranks of {devices} devices{cut}"
    raise InvalidValue(f"--ep {ranks}: {why}", f"the nearest valid: --ep {nearest_numbers(ranks, found)}")


def with_expert_ranks(graph: OperatorGraph, ranks: int, element_bytes: int) -> OperatorGraph:
    """The graph as one of so many ranks holds it: of each layer's experts a part, which its parameter says.

    element_bytes: of a weight. Raises InvalidValue where a layer's experts cannot be shared out so.
    """
    if ranks == 1:
        return graph
    held: dict[str, tuple[int, int]] = {}
    for operator in graph.operators:
        if operator.kind not in LAYERS:
            continue
        shape = layer_shape(operator)
        if shape.experts == 1:
            continue
        if shape.experts % ranks or not operator.parameters:
            raise InvalidValue(
                f"operator {operator.name!r}: {ranks} ranks cannot share out its {shape.experts} experts",
                "take a divisor of the number of experts",
            )
        name = operator.parameters[0]  # a further layer shares the table of the embedding besides
        held[name] = element_bytes * shape.weights(1, ranks), element_bytes * shape.expert_weights // ranks
    return replace(
        graph,
        parameters=tuple(
            replace(each, bytes=held[each.name][0], expert_bytes=held[each.name][1]) if each.name in held else each
            for each in graph.parameters
        ),
    )
