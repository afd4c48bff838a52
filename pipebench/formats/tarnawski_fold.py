"""Backward nodes folded into forward operators, and nodes that must be together joined (Tarnawski, section 5).

Steps of the published code: nodes of one colour become one; a colour with backward nodes only gets a forward node
without costs, with the mirror images of the backward edges; forward cycles of colours become one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipebench.formats.tarnawski_document import Node, TarnawskiDocument


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that share a device, in the order of the file."""

    nodes: tuple[Node, ...]

    @property
    def cpu_only(self) -> bool:
        """Whether one of them cannot run on an accelerator."""
        return any(not node.supported_on_fpga for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Output:
    """What one node sends: from its group to other groups. backward: it is the output of a backward node."""

    node: Node
    group: int
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """Groups, in the order of their first nodes; precedence of their forward parts; outputs that leave a group."""

    groups: tuple[Group, ...]
    precedence: frozenset[tuple[int, int]]
    outputs: tuple[Output, ...]


def fold(document: TarnawskiDocument) -> Folded:
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
    members: dict[int, list[Node]] = {}
    for node in document.nodes:
        members.setdefault(component[colours[node.id]], []).append(node)
    position = {found: index for index, found in enumerate(members)}
    group_of = {node.id: position[component[colours[node.id]]] for node in document.nodes}
    return Folded(
        groups=tuple(Group(tuple(listed)) for listed in members.values()),
        precedence=frozenset(
            (position[component[tail]], position[component[head]])
            for tail, head in graph.edges
            if component[tail] != component[head]
        ),
        outputs=tuple(_outputs(document, group_of)),
    )


def _outputs(document: TarnawskiDocument, group_of: dict[int, int]) -> Iterable[Output]:
    readers: dict[int, dict[int, None]] = {}
    for edge in document.edges:
        if group_of[edge.dest_id] != group_of[edge.source_id]:
            readers.setdefault(edge.source_id, {})[group_of[edge.dest_id]] = None
    for node in document.nodes:
        if node.id in readers:
            yield Output(node, group_of[node.id], tuple(readers[node.id]))
