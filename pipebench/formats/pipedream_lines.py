"""The lines of a PipeDream graph.txt (msr-fiddle/pipedream, profiler): nodes and edges, nothing interpreted.

A node:   node7 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348,
          activation_size=[6291456.0; 131072.0], parameter_size=50364416.000 -- stage_id=2
(one line; the stage is optional; times in ms, sizes in bytes, all for the whole profiled mini-batch)
An edge:  a tab, then node7 -- node8
"""

import math
import re
from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError, nearest

FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
LARGEST_COST = 1e18
_COSTS = f" -- {FIELDS[0]}="
_STAGE = re.compile(r"(.*) -- stage_id=(.*)")
_EDGE = re.compile(r"\s+(\S+) -- (\S+)")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Node:
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
class Edge:
    """One edge line: what `source` makes, `target` reads."""

    line: int
    source: str
    target: str


def parse_lines(data: bytes, source: str) -> tuple[list[Node], list[Edge]]:
    """Nodes in order of the file, edges without repetition.

    Raises PipebenchError that names file and line: a line that is neither, a field that is missing, unknown or
    no cost, a node that occurs twice, an edge to a node that is not there.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PipebenchError(f"{source}: not text: byte {error.start} is not UTF-8") from None
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str], Edge] = {}
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


def _edge(line: str, number: int, where: str) -> Edge:
    found = _EDGE.fullmatch(line)
    if found is None:
        raise PipebenchError(f"{where}: an edge reads '<tab>node1 -- node2', not {line.strip()[:60]!r}")
    return Edge(number, found[1], found[2])


def _node(line: str, number: int, where: str) -> Node:
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
    return Node(
        line=number,
        identifier=identifier,
        description=description,
        forward_ms=_cost(fields, "forward_compute_time", where),
        backward_ms=_cost(fields, "backward_compute_time", where),
        activation_bytes=tuple(_number(part.strip(), "activation_size", where) for part in listed),
        parameter_bytes=_cost(fields, "parameter_size", where),
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


def _cost(fields: dict[str, str], name: str, where: str) -> float:
    return _number(fields[name], name, where)


def _number(text: str, name: str, where: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    if number > LARGEST_COST:
        raise PipebenchError(f"{where}: {name} is {text[:40]!r}, it must be a finite number, not negative")
    return number
