"""PipeDream's graph.txt as a profile.

Rules that follow PipeDream's own optimizer: the time of an Input node is data loading and does not count, its
tensor is an input of the model; a `__getitem__` that nobody reads does not count; a node has one tensor, the sum
of those listed. Times and sizes belong to the whole profiled mini-batch and are divided by its samples.
"""

import re
from pathlib import Path
from typing import Any, cast

from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance
from pipebench.domain.value import Value, require
from pipebench.formats.pipedream_batch import infer_batch
from pipebench.formats.pipedream_graph import build_graph, is_input
from pipebench.formats.pipedream_layers import join_layers
from pipebench.formats.pipedream_lines import FIELDS, Edge, Node, parse_lines
from pipebench.formats.pipedream_saved import DEFINITIONS, SavedRule, saved_bytes_per_sample
from pipebench.formats.profile_format import ProfileFormat


class PipeDreamOptions(Value, frozen=True, kw_only=True):
    """saved: what an operator keeps for its backward; `boundary` joins operators to layers. batch: samples of
    the profiled mini-batch (default: told by the tensors). device: the device type to file the costs under; the
    file does not name it.
    """

    saved: SavedRule = "inputs"
    batch: int | None = None
    device: str = "profiled-gpu"

    def __post_init__(self) -> None:
        require(self.batch is None or self.batch >= 1, f"batch is {self.batch}, it must be at least 1")
        require(self.device != "", "device is empty")


def read(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a graph.txt. options: PipeDreamOptions.

    Raises PipebenchError with file and line for lines that are malformed, and for cycles, a file without
    operators, a mini-batch that nothing tells.
    """
    chosen = cast(PipeDreamOptions, options)
    nodes, edges = parse_lines(data, source)
    inputs = _inputs(nodes, edges, source)
    unread = _unread_items(nodes, edges)
    left_out = {node.identifier for node in (*inputs, *unread)}
    kept = [node for node in nodes if node.identifier not in left_out]
    if not kept:
        raise PipebenchError(f"{source}: no operators", "a profile needs at least one node beside its inputs")
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


def _inputs(nodes: list[Node], edges: list[Edge], source: str) -> list[Node]:
    inputs = [node for node in nodes if is_input(node)]
    names = {node.identifier for node in inputs}
    for edge in edges:
        if edge.target in names:
            raise PipebenchError(f"{source}: line {edge.line}: an edge leads into the input {edge.target!r}")
    return inputs


def _unread_items(nodes: list[Node], edges: list[Edge]) -> list[Node]:
    """`__getitem__` nodes that cost nothing and that nobody reads."""
    read = {edge.source for edge in edges}
    return [
        node
        for node in nodes
        if node.description.startswith("__getitem__")
        and node.identifier not in read
        and node.forward_ms == node.backward_ms == node.parameter_bytes == 0
    ]


def _costs(graph: OperatorGraph, kept: list[Node], batch: int, options: PipeDreamOptions) -> DeviceCosts:
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
    inputs: list[Node],
    unread: list[Node],
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
    return Provenance(
        profiler="PipeDream graph.txt",
        made_by=Path(source).name,
        device=options.device,
        saved=DEFINITIONS[options.saved],
        notes=tuple(notes),
    )


def recognises(data: bytes) -> bool:
    """Whether some line has the costs of a node, or the first line is one."""
    return f" -- {FIELDS[0]}=".encode() in data or re.match(rb"\s*node\S* -- ", data) is not None


FORMAT = ProfileFormat(
    name="pipedream",
    summary="graph.txt of PipeDream's profiler",
    suffix=".txt",
    options=PipeDreamOptions,
    recognises=recognises,
    read=read,
)
