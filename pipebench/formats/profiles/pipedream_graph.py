"""PipeDream's graph.txt: its lines, its batch size, and its operator graph."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.limits import MOST_BYTES, MOST_SECONDS
from pipebench.formats.typed_text import table_text

FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_COSTS = f" -- {FIELDS[0]}="
_STAGE = re.compile(r"(.*) -- stage_id=(.*)")
_EDGE = re.compile(r"\s+(\S+) -- (\S+)")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node line. activation_bytes: one entry for each tensor listed."""

    line: int
    identifier: str
    description: str
    forward_ms: float
    backward_ms: float
    activation_bytes: tuple[float, ...]
    parameter_bytes: float
    stage: int | None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """One edge line: what `source` makes, `target` reads."""

    line: int
    source: str
    target: str


def parse_lines(data: bytes, source: str) -> tuple[list[GraphNode], list[GraphEdge]]:
    """Nodes in order of the file, edges without repetition.

    Raises PipebenchError that names file and line: a line that is neither, a field that is missing, unknown or
    no cost, a node that occurs twice, an edge to a node that is not there.
    """
    text = table_text(data, source)
    nodes: dict[str, GraphNode] = {}
    edges: dict[tuple[str, str], GraphEdge] = {}
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip()
        if not line:
            continue
        where = f"{source}: line {number}"
        if line[0].isspace():
            edge = _edge(line, number, where)
            edges.setdefault((edge.source, edge.target), edge)
            continue
        node = _node(line, number, where)
        if node.identifier in nodes:
            first = nodes[node.identifier].line
            raise PipebenchError(f"{where}: node {node.identifier!r} occurs twice, first in line {first}")
        nodes[node.identifier] = node
    for edge in edges.values():
        for end in (edge.source, edge.target):
            if end not in nodes:
                raise PipebenchError(f"{source}: line {edge.line}: {end!r} is not a node of this file")
    return list(nodes.values()), list(edges.values())


def _edge(line: str, number: int, where: str) -> GraphEdge:
    found = _EDGE.fullmatch(line)
    if found is None:
        raise PipebenchError(f"{where}: an edge reads '<tab>node1 -- node2', not {line.strip()[:60]!r}")
    return GraphEdge(number, found[1], found[2])


def _node(line: str, number: int, where: str) -> GraphNode:
    # The description may hold ' -- ' and commas, so the costs are found from the right.
    head, separator, costs = line.rpartition(_COSTS)
    identifier, dashes, description = head.partition(" -- ")
    if not separator or not dashes or not identifier or " " in identifier:
        raise PipebenchError(
            f"{where}: a node reads 'node1 -- DESCRIPTION -- {FIELDS[0]}=…, …', not {line[:60]!r}"
        )
    stage = _STAGE.fullmatch(costs)
    if stage is not None:
        costs = stage[1]
        if not (stage[2].isascii() and stage[2].isdigit() and len(stage[2]) < 10):
            raise PipebenchError(f"{where}: stage_id is {stage[2]!r}, it must be a whole number")
    fields = _fields(f"{FIELDS[0]}={costs}", where)
    activation = fields["activation_size"]
    listed = activation[1:-1].split(";") if activation[:1] == "[" and activation[-1:] == "]" else [activation]
    return GraphNode(
        line=number,
        identifier=identifier,
        description=description,
        forward_ms=_number(fields["forward_compute_time"], "forward_compute_time", where, MOST_SECONDS * 1e3),
        backward_ms=_number(fields["backward_compute_time"], "backward_compute_time", where, MOST_SECONDS * 1e3),
        activation_bytes=tuple(_number(part.strip(), "activation_size", where, MOST_BYTES) for part in listed),
        parameter_bytes=_number(fields["parameter_size"], "parameter_size", where, MOST_BYTES),
        stage=int(stage[2]) if stage else None,
    )


def _fields(text: str, where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(", "):
        name, equals, value = part.partition("=")
        if not equals or name not in FIELDS:
            raise PipebenchError(f"{where}: unknown field {part[:60]!r}", nearest(name, FIELDS))
        if name in found:
            raise PipebenchError(f"{where}: field {name!r} occurs twice")
        found[name] = value
    for name in FIELDS:
        if name not in found:
            raise PipebenchError(f"{where}: field {name!r} is missing")
    return found


def _number(text: str, name: str, where: str, most: float) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    if number > most:
        raise PipebenchError(
            f"{where}: {name} is {text[:40]!r}, it must be a finite number, not negative and at most {most:g}"
        )
    return number


IMAGE_BYTES = {size: 3 * size * size * 4 for size in (224, 299)}
"""An fp32 RGB image of that many pixels a side."""
_LSTM = re.compile(r"LSTM\(\d+, (\d{1,9})\)", re.ASCII)


def infer_batch(inputs: Iterable[GraphNode], nodes: Iterable[GraphNode], source: str) -> int:
    """The profiled mini-batch: from an image Input, else from the state of LSTM layers (batch x hidden floats).

    Raises PipebenchError when neither tells, or they tell several sizes.
    """
    found = {batch for node in inputs if (batch := _images(sum(node.activation_bytes))) is not None}
    found = found or {batch for node in nodes if (batch := _lstm_batch(node)) is not None}
    if len(found) == 1:
        return found.pop()
    told = f"tensors tell {', '.join(map(str, sorted(found)))}" if found else "no tensor tells it"
    raise PipebenchError(
        f"{source}: the size of the profiled mini-batch is not known: {told}", f"say it: {source}[batch=64]"
    )


def _images(total: float) -> int | None:
    sizes = [int(total // image) for image in IMAGE_BYTES.values() if total > 0 and total % image == 0]
    return sizes[0] if len(sizes) == 1 else None


def _lstm_batch(node: GraphNode) -> int | None:
    layer = _LSTM.fullmatch(node.description)
    if layer is None or len(node.activation_bytes) != 3:
        return None
    batch, rest = divmod(node.activation_bytes[1], 4 * int(layer[1]) or 1)
    return int(batch) if batch >= 1 and rest == 0 else None


KINDS = {
    "AdaptiveAvgPool2d": "average_pool",
    "AvgPool2d": "average_pool",
    "BatchNorm2d": "batch_norm",
    "Conv2d": "conv2d",
    "MaxPool2d": "max_pool",
}
"""Kinds whose name is not the lower-case name of the module."""


def is_input(node: GraphNode) -> bool:
    """Whether a node is the data loader."""
    return re.fullmatch(r"Input\d*", node.description) is not None


def build_graph(
    name: str, kept: Sequence[GraphNode], inputs: Sequence[GraphNode], edges: Sequence[GraphEdge], batch: int
) -> OperatorGraph:
    """Operators in the order of the trace, one tensor each; an operator that no input reaches is constant.

    kept: nodes that become operators; inputs: nodes that become inputs of the model.
    Raises InvalidValue for a cycle.
    """
    kept = sorted(kept, key=_trace_order)
    names = {node.identifier for node in kept}
    reads: dict[str, list[str]] = {node.identifier: [] for node in kept}
    for edge in edges:
        if edge.target in names:
            reads[edge.target].append(edge.source)
    fed = _descendants({node.identifier for node in inputs}, reads)
    operators = tuple(
        Operator(
            name=node.identifier,
            kind=_kind(node.description),
            inputs=tuple(f"{before}.out" for before in reads[node.identifier]),
            parameters=(f"{node.identifier}.parameters",) if node.parameter_bytes else (),
            attributes={} if node.stage is None else {"stage_id": node.stage},
            constant=bool(inputs) and node.identifier not in fed,
        )
        for node in kept
    )
    return OperatorGraph(
        name=name,
        operators=operators,
        tensors=(
            *(_tensor(node, None, batch) for node in inputs),
            *(_tensor(node, node.identifier, batch) for node in kept),
        ),
        parameters=tuple(
            Parameter(name=f"{node.identifier}.parameters", bytes=round(node.parameter_bytes))
            for node in kept
            if node.parameter_bytes
        ),
    )


def _tensor(node: GraphNode, producer: str | None, batch: int) -> Tensor:
    size = sum(node.activation_bytes) / batch
    return Tensor(
        name=f"{node.identifier}.out",
        producer=producer,
        forward_bytes_per_sample=size,
        gradient_bytes_per_sample=size if producer else 0.0,
    )


def _trace_order(node: GraphNode) -> tuple[int, int, str]:
    """Nodes are numbered as they were traced; the file lists them in no order."""
    number = re.fullmatch(r"node(\d{1,18})", node.identifier, re.ASCII)
    return (0, int(number[1]), "") if number else (1, node.line, node.identifier)


def _kind(description: str) -> str:
    module = re.match(r"\w+", description)
    return KINDS.get(module[0], module[0].strip("_").lower() or "operator") if module else "operator"


def _descendants(starts: set[str], reads: dict[str, list[str]]) -> set[str]:
    """Everything that depends on one of `starts`, these included."""
    readers: dict[str, list[str]] = {}
    for reader, sources in reads.items():
        for before in sources:
            readers.setdefault(before, []).append(reader)
    found, left = set(starts), list(starts)
    while left:
        new = set(readers.get(left.pop(), ())) - found
        found |= new
        left += new
    return found
