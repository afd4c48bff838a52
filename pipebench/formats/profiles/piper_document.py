"""The JSON document of Piper (NeurIPS 2021, msr-fiddle/piper): nodes, ways to run each, edges; checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from pipebench.documents.decoding import bounded_json, require_unique_keys
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_BYTES, MOST_COUNT, MOST_RATE, MOST_SECONDS
from pipebench.domain.value import short
from pipebench.formats.typed_text import parse_json_part

Identifier = Annotated[int, Meta(ge=-(2**53), le=2**53)]
MOST_NATIVE_TIME = 1e6 * MOST_SECONDS
"""Of a way to run a node, in the unit of the file, which may be us."""


class Tmpc(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """One way to run a node."""

    id: str
    time_per_sample: float
    parameter_size: float
    memory_usage_a: float = msgspec.field(name="memoryUsageA")
    memory_usage_b: float = msgspec.field(name="memoryUsageB")
    sync_time_fw: dict[str, float]
    sync_time_bw: dict[str, float]


class _Node(msgspec.Struct, forbid_unknown_fields=True):
    id: Identifier
    tmpcs: dict[str, list[msgspec.Raw]] = msgspec.field(name="TMPCs")
    name: str = ""


class PiperEdge(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What `source_id` makes, `dest_id` reads; communication_cost: bytes of one micro-batch."""

    source_id: Identifier
    dest_id: Identifier
    communication_cost: float


class _PiperContent(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    max_memory_per_device: float
    max_devices: int
    bandwidth: float
    nodes: list[_Node]
    edges: list[PiperEdge]
    mbs_in_batch: int | None = None
    max_batch_size: int | None = None


@dataclass(frozen=True, slots=True)
class PiperNode:
    """One node: its TMPCs by tensor-parallel degree, ascending, each list as in the file."""

    identifier: int
    name: str
    tmpcs: dict[int, list[Tmpc]]


@dataclass(frozen=True, slots=True)
class PiperDocument:
    """A checked document. bandwidth: bytes in the unit of time of the file. micro_batches: in a mini-batch."""

    memory_bytes: int
    devices: int
    bandwidth: float
    micro_batches: int
    nodes: list[PiperNode]
    edges: list[PiperEdge]


def parse_piper(data: bytes, source: str) -> PiperDocument:
    """The document. Raises PipebenchError with the file and the place inside it.

    Wrong are: no JSON or cut short, a field that is missing, unknown, not a number or negative, both names of the
    batch field or none, an id twice, an edge from or to a node that is not there or written twice, degrees that
    differ between nodes, a neighbour in syncTime that no edge leads to.
    """
    text = bounded_json(data, source)
    document = parse_json_part(text, _PiperContent, source)
    if (document.mbs_in_batch is None) == (document.max_batch_size is None):
        both = "both are" if document.mbs_in_batch is not None else "neither is"
        raise PipebenchError(f"{source}: mbsInBatch or maxBatchSize: one is needed, {both} there")
    batch = document.mbs_in_batch if document.max_batch_size is None else document.max_batch_size
    assert batch is not None
    _check_range(f"{source}: maxMemoryPerDevice", document.max_memory_per_device, 1, 2.0**62)
    _check_range(f"{source}: maxDevices", document.max_devices, 1, MOST_COUNT)
    _check_range(f"{source}: bandwidth", document.bandwidth, 1, MOST_RATE)
    _check_range(
        f"{source}: mbsInBatch" if document.mbs_in_batch else f"{source}: maxBatchSize", batch, 1, MOST_COUNT
    )
    if not document.nodes:
        raise PipebenchError(f"{source}: nodes is empty")
    nodes = [_node(node, f"{source}: nodes[{position}]") for position, node in enumerate(document.nodes)]
    places: dict[int, int] = {}
    for position, node in enumerate(nodes):
        if node.identifier in places:
            first = places[node.identifier]
            raise PipebenchError(
                f"{source}: nodes[{position}]: id {node.identifier} occurs twice, first in nodes[{first}]"
            )
        places[node.identifier] = position
        if list(node.tmpcs) != list(nodes[0].tmpcs):
            raise PipebenchError(
                f"{source}: nodes[{position}].TMPCs: tensor-parallel degrees {_listed_tmpcs(node)}, "
                f"nodes[0] has {_listed_tmpcs(nodes[0])}",
                "all nodes need the same degrees",
            )
    require_unique_keys(text, source)
    neighbours = _check_edges(document.edges, places, source)
    for position, node in enumerate(nodes):
        _check_syncs(node, neighbours, f"{source}: nodes[{position}]")
    return PiperDocument(
        memory_bytes=int(document.max_memory_per_device),
        devices=document.max_devices,
        bandwidth=document.bandwidth,
        micro_batches=batch,
        nodes=nodes,
        edges=document.edges,
    )


def _node(node: _Node, where: str) -> PiperNode:
    found: dict[int, list[Tmpc]] = {}
    for text, listed in node.tmpcs.items():
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= MOST_COUNT):
            raise PipebenchError(
                f"{where}.TMPCs: {text[:40]!r} is no tensor-parallel degree", "a degree is 1, 2, …"
            )
        place = f"{where}.TMPCs[{text}]"
        if not listed:
            raise PipebenchError(f"{place} is empty")
        if int(text) in found:
            raise PipebenchError(f"{place}: degree {int(text)} occurs twice")
        tmpcs = [parse_json_part(raw, Tmpc, f"{place}[{i}]") for i, raw in enumerate(listed)]
        known: set[str] = set()
        for i, tmpc in enumerate(tmpcs):
            if tmpc.id in known:
                raise PipebenchError(f"{place}[{i}]: id {tmpc.id!r} occurs twice")
            known.add(tmpc.id)
            _check_range(f"{place}[{i}].timePerSample", tmpc.time_per_sample, 0, MOST_NATIVE_TIME)
            for name, number in _figures(tmpc):
                _check_range(f"{place}[{i}].{name}", number, 0, MOST_BYTES)
        found[int(text)] = tmpcs
    if 1 not in found:
        raise PipebenchError(f"{where}.TMPCs: degree 1 is missing", "a node must run on one device")
    return PiperNode(node.id, node.name, dict(sorted(found.items())))


def _figures(tmpc: Tmpc) -> Iterator[tuple[str, float]]:
    yield "parameterSize", tmpc.parameter_size
    yield "memoryUsageA", tmpc.memory_usage_a
    yield "memoryUsageB", tmpc.memory_usage_b
    yield from ((f"syncTimeFw[{key}]", number) for key, number in tmpc.sync_time_fw.items())
    yield from ((f"syncTimeBw[{key}]", number) for key, number in tmpc.sync_time_bw.items())


def _check_edges(edges: list[PiperEdge], places: dict[int, int], source: str) -> set[tuple[str, str]]:
    seen: dict[tuple[int, int], int] = {}
    for position, edge in enumerate(edges):
        where = f"{source}: edges[{position}]"
        for name, end in (("sourceId", edge.source_id), ("destId", edge.dest_id)):
            if end not in places:
                raise PipebenchError(f"{where}.{name}: {end} is not a node of this file")
        pair = (edge.source_id, edge.dest_id)
        if pair in seen:
            raise PipebenchError(f"{where}: {pair[0]} -> {pair[1]} occurs twice, first in edges[{seen[pair]}]")
        seen[pair] = position
        _check_range(f"{where}.communicationCost", edge.communication_cost, 0, MOST_BYTES)
    return {(str(tail), str(head)) for tail, head in seen}


def _check_syncs(node: PiperNode, edges: set[tuple[str, str]], where: str) -> None:
    own = str(node.identifier)
    for degree, tmpcs in node.tmpcs.items():
        for i, tmpc in enumerate(tmpcs):
            before = [(f"syncTimeFw[{key}]", (key, own)) for key in tmpc.sync_time_fw]
            after = [(f"syncTimeBw[{key}]", (own, key)) for key in tmpc.sync_time_bw]
            for name, pair in (*before, *after):
                if pair not in edges:
                    raise PipebenchError(
                        f"{where}.TMPCs[{degree}][{i}].{name}: there is no edge {pair[0]} -> {pair[1]}"
                    )


def _check_range(where: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:
        raise PipebenchError(f"{where} is {short(number)}, it must be between {least:g} and {most:g}")


def _listed_tmpcs(node: PiperNode) -> str:
    return ", ".join(map(str, node.tmpcs))
