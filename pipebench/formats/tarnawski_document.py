"""The JSON of Tarnawski et al. (NeurIPS 2020, msr-fiddle/dnn-partitioning), throughput inputs; checked."""

import math
from dataclasses import dataclass
from itertools import count

import msgspec

from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import MOST_BYTES, MOST_COUNT
from pipebench.formats.strict import parse_json

MOST_MS = 1e9


class Node(msgspec.Struct, forbid_unknown_fields=True):
    """One node: latencies in ms, size in bytes on an accelerator; nodes of one colour go to one device."""

    id: int
    cpu_latency: float = msgspec.field(name="cpuLatency")
    fpga_latency: float = msgspec.field(name="fpgaLatency")
    supported_on_fpga: bool | int = msgspec.field(name="supportedOnFpga")
    is_backward_node: bool | int = msgspec.field(name="isBackwardNode")
    size: float
    color_class: int | None = msgspec.field(name="colorClass", default=None)
    name: str = ""
    layer_id: int | None = msgspec.field(name="layerId", default=None)


class Edge(msgspec.Struct, forbid_unknown_fields=True):
    """cost: the TIME that the output of `source_id` takes between an accelerator and the memory of the CPU."""

    source_id: int = msgspec.field(name="sourceId")
    dest_id: int = msgspec.field(name="destId")
    cost: float
    size: float | None = None


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    max_size_per_fpga: float = msgspec.field(name="maxSizePerFPGA")
    max_fpgas: int = msgspec.field(name="maxFPGAs")
    max_cpus: int = msgspec.field(name="maxCPUs")
    nodes: list[Node]
    edges: list[Edge]


@dataclass(frozen=True, slots=True)
class TarnawskiDocument:
    """A checked document. colours: of each node by id, a fresh one where the file has none. costs: ms to send
    the output of a node, by id, of those with edges.
    """

    memory_bytes: int
    accelerators: int
    cpus: int
    nodes: list[Node]
    edges: list[Edge]
    colours: dict[int, int]
    costs: dict[int, float]


def parse_tarnawski(data: bytes, source: str) -> TarnawskiDocument:
    """The document. Raises PipebenchError with the file and the place inside it.

    Wrong are: no JSON or cut short, a field that is missing, unknown, not a number or negative, an id twice, an
    edge from or to a node that is not there, twice, or from a backward to a forward node; edges of one node with
    different costs.
    """
    document = parse_json(data, _Document, source)
    _within(f"{source}: maxSizePerFPGA", document.max_size_per_fpga, 1, 2.0**62)
    _within(f"{source}: maxFPGAs", document.max_fpgas, 0, MOST_COUNT)
    _within(f"{source}: maxCPUs", document.max_cpus, 0, MOST_COUNT)
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
                raise PipebenchError(f"{where}.{flag} is {value}, it must be true or false")
        _within(f"{where}.cpuLatency", node.cpu_latency, 0, MOST_MS)
        _within(f"{where}.fpgaLatency", node.fpga_latency, 0, MOST_MS)
        _within(f"{where}.size", node.size, 0, MOST_BYTES)
    return TarnawskiDocument(
        memory_bytes=int(document.max_size_per_fpga),
        accelerators=document.max_fpgas,
        cpus=document.max_cpus,
        nodes=document.nodes,
        edges=document.edges,
        colours=_colours(document.nodes),
        costs=_costs(document, places, source),
    )


def _colours(nodes: list[Node]) -> dict[int, int]:
    used = {node.color_class for node in nodes}
    fresh = (colour for colour in count(max((c for c in used if c is not None), default=0) + 1))
    return {node.id: next(fresh) if node.color_class is None else node.color_class for node in nodes}


def _costs(document: _Document, places: dict[int, int], source: str) -> dict[int, float]:
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
        _within(f"{where}.cost", edge.cost, 0, MOST_MS)
        if edge.size is not None:
            _within(f"{where}.size", edge.size, 0, MOST_BYTES)
        if costs.setdefault(edge.source_id, edge.cost) != edge.cost:
            raise PipebenchError(
                f"{where}.cost is {edge.cost:g}, another edge of node {edge.source_id} has "
                f"{costs[edge.source_id]:g}",
                "a node has one output, sent at one cost",
            )
    return costs


def _within(where: str, number: float, least: float, most: float) -> None:
    if not (math.isfinite(number) and least <= number <= most):
        raise PipebenchError(f"{where} is {number:g}, it must be between {least:g} and {most:g}")
