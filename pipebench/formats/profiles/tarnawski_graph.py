"""The JSON of Tarnawski et al. (NeurIPS 2020): nodes checked, backward folded into forward, the operator graph."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Annotated

import msgspec
from msgspec import Meta

from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.limits import MOST_BYTES, MOST_COUNT, MOST_SECONDS
from pipebench.domain.value import short
from pipebench.formats.profiles.format import unique_names
from pipebench.formats.typed_text import parse_json

MOST_MS = 1e3 * MOST_SECONDS


Identifier = Annotated[int, Meta(ge=-(2**53), le=2**53)]


class TarnawskiNode(msgspec.Struct, forbid_unknown_fields=True):
    """One node: latencies in ms, size in bytes on an accelerator; nodes of one colour go to one device."""

    id: Identifier
    cpu_latency: float = msgspec.field(name="cpuLatency")
    fpga_latency: float = msgspec.field(name="fpgaLatency")
    supported_on_fpga: bool | int = msgspec.field(name="supportedOnFpga")
    is_backward_node: bool | int = msgspec.field(name="isBackwardNode")
    size: float
    color_class: Identifier | None = msgspec.field(name="colorClass", default=None)
    name: str = ""
    layer_id: Identifier | None = msgspec.field(name="layerId", default=None)


class TarnawskiEdge(msgspec.Struct, forbid_unknown_fields=True):
    """cost: the TIME that the output of `source_id` takes between an accelerator and the memory of the CPU."""

    source_id: Identifier = msgspec.field(name="sourceId")
    dest_id: Identifier = msgspec.field(name="destId")
    cost: float
    size: float | None = None


class _TarnawskiContent(msgspec.Struct, forbid_unknown_fields=True):
    max_size_per_fpga: float = msgspec.field(name="maxSizePerFPGA")
    max_fpgas: int = msgspec.field(name="maxFPGAs")
    max_cpus: int = msgspec.field(name="maxCPUs")
    nodes: list[TarnawskiNode]
    edges: list[TarnawskiEdge]


@dataclass(frozen=True, slots=True)
class TarnawskiDocument:
    """A checked document. colours: of each node by id, a fresh one where the file has none. costs: ms to send
    the output of a node, by id, of those with edges.
    """

    memory_bytes: int
    accelerators: int
    cpus: int
    nodes: list[TarnawskiNode]
    edges: list[TarnawskiEdge]
    colours: dict[int, int]
    costs: dict[int, float]


def parse_tarnawski(data: bytes, source: str) -> TarnawskiDocument:
    """The document. Raises PipebenchError with the file and the place inside it.

    Wrong are: no JSON or cut short, a field that is missing, unknown, not a number or negative, an id twice, an
    edge from or to a node that is not there, twice, or from a backward to a forward node; edges of one node with
    different costs.
    """
    document = parse_json(data, _TarnawskiContent, source)
    _check_range(f"{source}: maxSizePerFPGA", document.max_size_per_fpga, 1, 2.0**62)
    _check_range(f"{source}: maxFPGAs", document.max_fpgas, 0, MOST_COUNT)
    _check_range(f"{source}: maxCPUs", document.max_cpus, 0, MOST_COUNT)
    if not document.nodes:
        raise PipebenchError(f"{source}: nodes is empty")
    places: dict[int, int] = {}
    for position, node in enumerate(document.nodes):
        where = f"{source}: nodes[{position}]"
        if node.id in places:
            raise PipebenchError(f"{where}: id {node.id} occurs twice, first in nodes[{places[node.id]}]")
        places[node.id] = position
        for flag, value in (
            ("supportedOnFpga", node.supported_on_fpga),
            ("isBackwardNode", node.is_backward_node),
        ):
            if int(value) not in (0, 1):
                raise PipebenchError(f"{where}.{flag} is {short(value)}, it must be true or false")
        _check_range(f"{where}.cpuLatency", node.cpu_latency, 0, MOST_MS)
        _check_range(f"{where}.fpgaLatency", node.fpga_latency, 0, MOST_MS)
        _check_range(f"{where}.size", node.size, 0, MOST_BYTES)
    return TarnawskiDocument(
        memory_bytes=int(document.max_size_per_fpga),
        accelerators=document.max_fpgas,
        cpus=document.max_cpus,
        nodes=document.nodes,
        edges=document.edges,
        colours=_colours(document.nodes),
        costs=_costs(document, places, source),
    )


def _colours(nodes: list[TarnawskiNode]) -> dict[int, int]:
    used = {node.color_class for node in nodes}
    fresh = (colour for colour in count(max((c for c in used if c is not None), default=0) + 1))
    return {node.id: next(fresh) if node.color_class is None else node.color_class for node in nodes}


def _costs(document: _TarnawskiContent, places: dict[int, int], source: str) -> dict[int, float]:
    costs: dict[int, float] = {}
    seen: dict[tuple[int, int], int] = {}
    for position, edge in enumerate(document.edges):
        where = f"{source}: edges[{position}]"
        for name, end in (("sourceId", edge.source_id), ("destId", edge.dest_id)):
            if end not in places:
                raise PipebenchError(f"{where}.{name}: {end} is not a node of this file")
        pair = (edge.source_id, edge.dest_id)
        if pair in seen:
            raise PipebenchError(f"{where}: {pair[0]} -> {pair[1]} occurs twice, first in edges[{seen[pair]}]")
        seen[pair] = position
        tail, head = (document.nodes[places[end]] for end in pair)
        if tail.is_backward_node and not head.is_backward_node:
            raise PipebenchError(f"{where}: leads from the backward node {tail.id} to the forward node {head.id}")
        _check_range(f"{where}.cost", edge.cost, 0, MOST_MS)
        if edge.size is not None:
            _check_range(f"{where}.size", edge.size, 0, MOST_BYTES)
        if costs.setdefault(edge.source_id, edge.cost) != edge.cost:
            raise PipebenchError(
                f"{where}.cost is {edge.cost:g}, another edge of node {edge.source_id} has "
                f"{costs[edge.source_id]:g}",
                "a node has one output, sent at one cost",
            )
    return costs


def _check_range(where: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:
        raise PipebenchError(f"{where} is {short(number)}, it must be between {least:g} and {most:g}")


@dataclass(frozen=True, slots=True)
class FoldedGroup:
    """Nodes that share a device, in the order of the file."""

    nodes: tuple[TarnawskiNode, ...]

    @property
    def cpu_only(self) -> bool:
        """Whether one of them cannot run on an accelerator."""
        return any(not node.supported_on_fpga for node in self.nodes)


@dataclass(frozen=True, slots=True)
class NodeOutput:
    """What one node sends: from its group to other groups. backward: it is the output of a backward node."""

    node: TarnawskiNode
    group: int
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FoldedGraph:
    """Groups, in the order of their first nodes; precedence of their forward parts; outputs that leave a group."""

    groups: tuple[FoldedGroup, ...]
    precedence: frozenset[tuple[int, int]]
    outputs: tuple[NodeOutput, ...]


def fold(document: TarnawskiDocument) -> FoldedGraph:
    """The groups of a document: a directed acyclic graph by `precedence`."""
    import networkx  # only these files need it

    nodes = {node.id: node for node in document.nodes}
    colours = document.colours
    forward = {colours[node.id] for node in document.nodes if not node.is_backward_node}
    graph = networkx.DiGraph()
    graph.add_nodes_from(dict.fromkeys(colours.values()))
    for edge in document.edges:
        tail, head = colours[edge.source_id], colours[edge.dest_id]
        if not nodes[edge.dest_id].is_backward_node:
            graph.add_edge(tail, head)
        elif nodes[edge.source_id].is_backward_node and not {tail, head} <= forward:
            graph.add_edge(head, tail)
    component = {
        colour: position
        for position, colours_of in enumerate(networkx.strongly_connected_components(graph))
        for colour in colours_of
    }
    members: dict[int, list[TarnawskiNode]] = {}
    for node in document.nodes:
        members.setdefault(component[colours[node.id]], []).append(node)
    position = {found: index for index, found in enumerate(members)}
    group_of = {node.id: position[component[colours[node.id]]] for node in document.nodes}
    return FoldedGraph(
        groups=tuple(FoldedGroup(tuple(listed)) for listed in members.values()),
        precedence=frozenset(
            (position[component[tail]], position[component[head]])
            for tail, head in graph.edges
            if component[tail] != component[head]
        ),
        outputs=tuple(_outputs(document, group_of)),
    )


def _outputs(document: TarnawskiDocument, group_of: dict[int, int]) -> Iterable[NodeOutput]:
    readers: dict[int, dict[int, None]] = {}
    for edge in document.edges:
        if group_of[edge.dest_id] != group_of[edge.source_id]:
            readers.setdefault(edge.source_id, {})[group_of[edge.dest_id]] = None
    for node in document.nodes:
        if node.id in readers:
            yield NodeOutput(node, group_of[node.id], tuple(readers[node.id]))


SHARED = "->"


def build_graph(name: str, document: TarnawskiDocument, folded: FoldedGraph, rate: float) -> OperatorGraph:
    """Operators in the order of the groups. rate: bytes that are sent in one unit of the costs."""
    first = [next((n for n in group.nodes if not n.is_backward_node), group.nodes[0]) for group in folded.groups]
    named = unique_names([(node.id, node.name) for node in first])
    names = [named[node.id] for node in first]
    sent = unique_names([(output.node.id, output.node.name) for output in folded.outputs])
    order = _topological_places(folded)
    reads: list[dict[str, None]] = [{} for _ in names]
    tensors: dict[str, Tensor] = {}

    def add(tensor: str, producer: int, readers: tuple[int, ...], forward: float, gradient: float) -> None:
        tensors[tensor] = Tensor(
            name=tensor,
            producer=names[producer],
            forward_bytes_per_sample=forward,
            gradient_bytes_per_sample=gradient,
        )
        for reader in readers:
            reads[reader][tensor] = None

    gradients = _gradients_of_outputs(folded)
    paired = set(gradients.values())
    for output in folded.outputs:
        if output.node.id in paired:
            continue
        size = document.costs[output.node.id] * rate
        later = tuple(group for group in output.readers if order[group] > order[output.group])
        earlier = tuple(group for group in output.readers if order[group] < order[output.group])
        tensor = f"{sent[output.node.id]}.out"
        if later:
            back = gradients.get(output.node.id)
            gradient = 0.0 if back is None else document.costs[back] * rate
            if output.node.is_backward_node:
                add(tensor, output.group, later, 0.0, size)
            else:
                add(tensor, output.group, later, size, gradient)
        for leaf in earlier:
            alone = len(output.readers) == 1
            add(tensor if alone else f"{tensor}{SHARED}{names[leaf]}", leaf, (output.group,), 0.0, size)
    return OperatorGraph(
        name=name,
        operators=tuple(
            Operator(
                name=names[position],
                kind="operator",
                inputs=tuple(reads[position]),
                attributes={
                    "colour": document.colours[group.nodes[0].id],
                    "nodes": len(group.nodes),
                    **({"cpu_only": 1} if group.cpu_only else {}),
                },
            )
            for position, group in enumerate(folded.groups)
        ),
        tensors=tuple(tensors.values()),
    )


def _gradients_of_outputs(folded: FoldedGraph) -> dict[int, int]:
    """Forward node to the backward node of its group that sends to the same groups: one tensor, both ways."""
    waiting: dict[tuple[int, tuple[int, ...]], list[NodeOutput]] = {}
    for output in folded.outputs:
        if output.node.is_backward_node:
            waiting.setdefault((output.group, tuple(sorted(output.readers))), []).append(output)
    order = _topological_places(folded)
    paired: dict[int, int] = {}
    for output in folded.outputs:
        key = (output.group, tuple(sorted(output.readers)))
        same = not output.node.is_backward_node and waiting.get(key)
        if same and all(order[group] > order[output.group] for group in output.readers):
            paired[output.node.id] = same.pop(0).node.id
    return paired


def _topological_places(folded: FoldedGraph) -> list[int]:
    """For each group its place in one topological order."""
    after: list[list[int]] = [[] for _ in folded.groups]
    waiting = [0] * len(folded.groups)
    for before, group in sorted(folded.precedence):
        after[before].append(group)
        waiting[group] += 1
    ready = [group for group in range(len(waiting)) if waiting[group] == 0]
    places = [0] * len(waiting)
    for place in range(len(waiting)):
        group = ready.pop()
        places[group] = place
        for following in after[group]:
            waiting[following] -= 1
            if waiting[following] == 0:
                ready.append(following)
    return places
