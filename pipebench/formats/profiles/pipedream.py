"""PipeDream's graph.txt as a profile, and a profile as graph.txt."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from pipebench.algorithms.graph_orders import linearise, pieces
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance
from pipebench.domain.value import Value, require, require_count
from pipebench.formats.profiles.format import (
    ProfileFormat,
    ProfileText,
    losses,
    number,
    outputs,
    own_parameter_bytes,
    single,
)
from pipebench.formats.profiles.pipedream_graph import (
    FIELDS,
    KINDS,
    GraphEdge,
    GraphNode,
    build_graph,
    infer_batch,
    is_input,
    parse_lines,
)

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


class PipeDreamOptions(Value, frozen=True, kw_only=True):
    """saved: what an operator keeps for its backward; `boundary` joins operators to layers. batch: samples of
    the profiled mini-batch (default: told by the tensors). device: the device type to file the costs under; the
    file does not name it.
    """

    saved: SavedRule = "inputs"
    batch: int | None = None
    device: str = "profiled-gpu"

    def __post_init__(self) -> None:
        if self.batch is not None:
            require_count("batch", self.batch)
        require(self.device != "", "device is empty")


def read(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a graph.txt. options: PipeDreamOptions.

    Raises PipebenchError with file and line for lines that are malformed, and for cycles, a file without
    operators, several operators without edges, a mini-batch that nothing tells.
    """
    chosen = cast(PipeDreamOptions, options)
    nodes, edges = parse_lines(data, source)
    inputs = _inputs(nodes, edges, source)
    unread = _unread_items(nodes, edges)
    left_out = {node.identifier for node in (*inputs, *unread)}
    kept = [node for node in nodes if node.identifier not in left_out]
    if not kept:
        raise PipebenchError(f"{source}: no operators", "a profile needs at least one node beside its inputs")
    if len(kept) > 1 and not edges:
        raise PipebenchError(
            f"{source}: {len(kept)} operators and no edge between them: the file may have been cut short",
            "edges stand on lines of their own, '<tab>node1 -- node2'",
        )
    batch = chosen.batch or infer_batch(inputs, kept, source)
    try:
        graph = build_graph(Path(source).stem, kept, inputs, edges, batch)
    except InvalidValue as error:
        raise PipebenchError(f"{source}: {error}") from None
    provenance = _provenance(source, graph, inputs, unread, batch, chosen)
    costs = _costs(graph, kept, batch, chosen)
    if chosen.saved == "boundary":
        graph, costs = join_layers(graph, costs)
    return Profile(name=graph.name, graph=graph, costs=(costs,), provenance=provenance)


def _inputs(nodes: list[GraphNode], edges: list[GraphEdge], source: str) -> list[GraphNode]:
    inputs = [node for node in nodes if is_input(node)]
    names = {node.identifier for node in inputs}
    for edge in edges:
        if edge.target in names:
            raise PipebenchError(f"{source}: line {edge.line}: an edge leads into the input {edge.target!r}")
    return inputs


def _unread_items(nodes: list[GraphNode], edges: list[GraphEdge]) -> list[GraphNode]:
    """`__getitem__` nodes that cost nothing and that nobody reads."""
    read = {edge.source for edge in edges}
    return [
        node
        for node in nodes
        if node.description.startswith("__getitem__")
        and node.identifier not in read
        and node.forward_ms == node.backward_ms == node.parameter_bytes == 0
    ]


def _costs(graph: OperatorGraph, kept: list[GraphNode], batch: int, options: PipeDreamOptions) -> DeviceCosts:
    saved = saved_bytes_per_sample(graph, options.saved)
    node_of = {node.identifier: node for node in kept}
    return DeviceCosts(
        device_type=options.device,
        micro_batches=(batch,),
        operators=tuple(
            OperatorCosts(
                operator=operator.name,
                forward_s=(node_of[operator.name].forward_ms / 1e3,),
                backward_s=(node_of[operator.name].backward_ms / 1e3,),
                saved_bytes_per_sample=kept_bytes,
            )
            for operator, kept_bytes in zip(graph.operators, saved, strict=True)
        ),
    )


def _provenance(
    source: str,
    graph: OperatorGraph,
    inputs: list[GraphNode],
    unread: list[GraphNode],
    batch: int,
    options: PipeDreamOptions,
) -> Provenance:
    loading = sum(node.forward_ms + node.backward_ms for node in inputs)
    notes = [f"profiled with a mini-batch of {batch} samples" + ("" if options.batch else ", told by its tensors")]
    if inputs:
        notes.append(f"left out {len(inputs)} input nodes with {loading:.6g} ms of data loading")
    if unread:
        notes.append(f"left out {len(unread)} __getitem__ nodes that nobody reads")
    unfed = sum(operator.constant and bool(operator.parameters) for operator in graph.operators)
    if unfed:
        notes.append(f"no input reaches {unfed} operators with parameters: the file may have been cut short")
    tensors = zip(graph.producers, graph.consumers, strict=True)
    ends = ([end for end in (producer, *readers) if end >= 0] for producer, readers in tensors)
    parts = len(pieces(len(graph.operators), ends))
    if parts > 1:
        notes.append(f"the graph falls into {parts} parts that share no tensor: the file may have been cut short")
    return Provenance(
        profiler="PipeDream graph.txt",
        made_by=Path(source).name,
        device=options.device,
        saved=DEFINITIONS[options.saved],
        notes=tuple(notes),
    )


def recognises(data: bytes) -> bool:
    """Whether some line has the costs of a node, or the first line is one."""
    return _COSTS_OF_NODE.search(data) is not None or re.match(rb"\s*node\S* -- ", data) is not None


_COSTS_OF_NODE = re.compile(rb"^\S+ -- [^\n]* -- %b=" % FIELDS[0].encode(), re.MULTILINE)


FORMAT = ProfileFormat(
    name="pipedream",
    summary="graph.txt of PipeDream's profiler",
    suffix=".txt",
    options=PipeDreamOptions,
    recognises=recognises,
    read=read,
)


_NODE = re.compile(r"node\d{1,18}", re.ASCII)
_WHAT = "a graph.txt"


def write(profile: Profile) -> ProfileText:
    """Nodes and edges; inputs of the model become Input nodes without times.

    Raises PipebenchError: several device types or sizes, several outputs of an operator, a shared parameter.
    """
    costs, batch = single(profile, _WHAT)
    made, weights = outputs(profile, _WHAT), own_parameter_bytes(profile, _WHAT)
    graph = profile.graph
    names = _identifiers(profile)
    descriptions = {kind: module for module, kind in KINDS.items()}
    lines: list[str] = []
    for operator, name, each, tensor, held in zip(
        graph.operators, names, costs.operators, made, weights, strict=True
    ):
        kind = descriptions.get(operator.kind) or re.sub(r"\W+", "_", operator.kind)
        label = kind if name == operator.name else f"{kind}({operator.name})"
        stage = operator.attributes.get("stage_id")
        lines.append(
            _node(
                name,
                label,
                each.forward_s[0],
                each.backward_s[0],
                None if tensor is None else tensor.forward_bytes_per_sample * batch,
                held,
            )
            + ("" if stage is None else f" -- stage_id={stage}")
        )
    edges: list[str] = []
    taken = max((int(name[4:]) for name in names), default=0)
    for position, (tensor, producer) in enumerate(zip(graph.tensors, graph.producers, strict=True)):
        source = names[producer] if producer >= 0 else f"node{taken + 1 + position}"
        if producer < 0:
            lines.append(_node(source, f"Input{position}", 0.0, 0.0, tensor.forward_bytes_per_sample * batch, 0))
        edges += [f"\t{source} -- {names[reader]}" for reader in graph.consumers[position]]
    left_out = losses(profile, costs)
    if any(
        t.producer is not None and t.gradient_bytes_per_sample != t.forward_bytes_per_sample for t in graph.tensors
    ):
        left_out.append("sizes of gradients that differ from those of their tensors")
    left_out.append(
        f"the mini-batch of {batch} samples and what each operator saves: read it with [batch={batch}]"
    )
    return ProfileText("\n".join([*lines, *edges, ""]).encode(), tuple(left_out))


def _identifiers(profile: Profile) -> list[str]:
    """The names where all are node<number> in the order of the graph, else node1, node2, … in that order."""
    names = [operator.name for operator in profile.graph.operators]
    if all(_NODE.fullmatch(name) for name in names):
        numbers = [int(name[4:]) for name in names]
        if numbers == sorted(set(numbers)):
            return names
    return [f"node{position}" for position in range(1, len(names) + 1)]


def _node(name: str, label: str, forward_s: float, backward_s: float, sent: float | None, held: int) -> str:
    return (
        f"{name} -- {label} -- forward_compute_time={number(_ms(forward_s))}, "
        f"backward_compute_time={number(_ms(backward_s))}, activation_size={number(_whole_bytes(sent or 0.0))}, "
        f"parameter_size={held}"
    )


def _ms(seconds: float) -> float:
    """Milliseconds that read back as the same seconds, the shortest of the two or three near ones."""
    near = float(f"{seconds * 1e3:.15g}")
    return near if near / 1e3 == seconds else seconds * 1e3


def _whole_bytes(size: float) -> float:
    """Bytes that were divided by the samples of a mini-batch are whole again."""
    return float(round(size)) if abs(size - round(size)) <= 1e-9 * max(1.0, size) else size
