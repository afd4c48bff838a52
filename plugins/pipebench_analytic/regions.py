"""Where tensor parallelism leaves activations in pieces between linears (Shoeybi et al. 2019, section 3).

Models whose operators are the tasks of a program spell out what stands between: from linears that split their
outputs (by columns) to linears that take their inputs split (by rows), every task works on its share of heads or
features and sends nothing.
"""

from dataclasses import dataclass
from math import gcd

from pipebench.domain.graph import Operator, OperatorGraph

WITHIN = frozenset(
    ("add", "bias", "copy", "dropout", "erf", "matmul", "mul", "permute", "scale", "softmax", "square", "view")
)
"""Kinds that can work on a share of heads or features."""


SHARED_DIMS = ("heads", "features")
"""What a share is one part of: the first of these dims that an operator has."""


@dataclass(frozen=True, slots=True)
class Regions:
    """columns: linears that begin a region, with how many of them read the same input. rows: linears that end
    one. within: what works on shares between them. parts: for each operator of a region what the number of
    shares has to divide, so that all of the region can have as many.
    """

    columns: dict[int, int]
    rows: frozenset[int]
    within: frozenset[int]
    parts: dict[int, int]


def shared_dim(operator: Operator) -> str:
    """The dim that shares of an operator within a region cut."""
    return next(dim for dim in SHARED_DIMS if dim in operator.dims)


def regions(graph: OperatorGraph) -> Regions:
    """All regions of a graph. One that reaches an operator which needs whole tensors is none.

    Linears that follow each other directly are left to splits.linear_pairs.
    """
    found = _Regions(graph)
    for op in graph.topological:
        found.visit(op)
    return found.closed()


class _Regions:
    def __init__(self, graph: OperatorGraph) -> None:
        self._graph = graph
        self._parent: list[int] = list(range(len(graph.operators)))
        self._open: set[int] = set()
        self._broken: set[int] = set()
        self._begin: set[int] = set()
        self._end: dict[int, int] = {}

    def _root(self, op: int) -> int:
        while self._parent[op] != op:
            self._parent[op] = self._parent[self._parent[op]]
            op = self._parent[op]
        return op

    def _join(self, ops: list[int]) -> int:
        first = self._root(ops[0])
        for op in ops[1:]:
            other = self._root(op)
            if other != first:
                self._parent[other] = first
                if other in self._broken:
                    self._broken.add(first)
        return first

    def _kind(self, op: int) -> str:
        return self._graph.operators[op].kind

    def visit(self, op: int) -> None:
        """After all that it reads from."""
        graph = self._graph
        kind = self._kind(op)
        split = [before for before in graph.predecessors[op] if before in self._open]
        if kind == "linear":
            if split:
                self._end[op] = self._join(split)
            elif (
                all(graph.operators[after].kind in WITHIN for after in graph.successors[op])
                and graph.successors[op]
            ):
                self._begin.add(op)
                self._open.add(op)
            return
        if not split:
            return
        root = self._join(split)
        cut = any(dim in graph.operators[op].dims for dim in SHARED_DIMS)
        if kind not in WITHIN or not cut or self._reads_whole(op):
            self._broken.add(root)
            return
        self._parent[op] = root
        self._open.add(op)

    def _reads_whole(self, op: int) -> bool:
        """Whether it reads a whole tensor that has a gradient (masks have none, they are the same everywhere)."""
        graph = self._graph
        read = [graph.tensor_index[name] for name in graph.operators[op].inputs]
        return any(
            graph.tensors[tensor].gradient_bytes_per_sample > 0 and graph.producers[tensor] not in self._open
            for tensor in read
        )

    def closed(self) -> Regions:
        """Regions that end in linears on every way out."""
        graph = self._graph
        for op in self._open:
            if not graph.successors[op]:
                self._broken.add(self._root(op))
        broken = {self._root(op) for op in self._broken}
        ended = {self._root(root) for root in self._end.values()} - broken
        begin = [op for op in self._begin if self._root(op) in ended]
        beside: dict[tuple[str, ...], int] = {}
        for op in begin:
            beside[graph.operators[op].inputs] = beside.get(graph.operators[op].inputs, 0) + 1
        rows = {op: self._root(root) for op, root in self._end.items() if self._root(root) in ended}
        within = [op for op in self._open if op not in self._begin and self._root(op) in ended]
        parts: dict[int, int] = {}
        members = [(op, self._root(op)) for op in (*begin, *within)] + list(rows.items())
        for op, root in members:
            operator = graph.operators[op]
            dim = "in_features" if op in rows else "out_features" if op in self._begin else shared_dim(operator)
            parts[root] = gcd(parts.get(root, 0), operator.dims[dim])
        return Regions(
            columns={op: beside[graph.operators[op].inputs] for op in begin},
            rows=frozenset(rows),
            within=frozenset(within),
            parts={op: parts[root] for op, root in members},
        )
