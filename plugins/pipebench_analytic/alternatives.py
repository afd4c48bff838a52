"""Other ways to run an operator: split over several devices, or with its forward run again before its backward."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Literal

from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.profile import Alternative
from pipebench.domain.recomputation import Repeated
from pipebench_analytic.kinds import SavedBytes, kind_of
from pipebench_analytic.roofline import Roofline, significant
from pipebench_analytic.work import Kernels, OperatorWork

WITHIN = frozenset(
    ("add", "bias", "copy", "dropout", "erf", "matmul", "mul", "permute", "scale", "softmax", "square", "view")
)
"""Kinds that can work on a share of heads or features."""


SHARED_DIMS = ("heads", "features")
"""What a share is one part of: the first of these dims that an operator has."""


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of a graph that work on shares of tensors.

    columns: linears that begin a region, with how many of them read the same input.
    rows: linears that end one.
    within: operators between them, which work on shares.
    parts: for each operator of a region, what the number of shares has to divide, so that all of the region can
        have as many.
    """

    columns: dict[int, int]
    rows: frozenset[int]
    within: frozenset[int]
    parts: dict[int, int]


def shared_dim(operator: Operator) -> str:
    """The dim that shares of an operator within a region cut."""
    return next(dim for dim in SHARED_DIMS if dim in operator.dims)


def regions(graph: OperatorGraph) -> Regions:
    """All regions of a graph. A region that reaches an operator which needs whole tensors does not count.

    Linears that follow each other directly are left to linear_pairs.
    """
    found = _Regions(graph)
    for op in graph.topological:
        found.visit(op)
    return found.regions()


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
        """Add an operator. The operators that it reads from come first."""
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
        """Whether it reads a whole tensor that has a gradient (masks have none; they are the same everywhere)."""
        graph = self._graph
        read = [graph.tensor_index[name] for name in graph.operators[op].inputs]
        return any(
            graph.tensors[tensor].gradient_bytes_per_sample > 0 and graph.producers[tensor] not in self._open
            for tensor in read
        )

    def regions(self) -> Regions:
        """The regions that end in linears on every way out."""
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


@dataclass(frozen=True, slots=True)
class Split:
    """One operator over several devices: the dim that is cut, what arrives or leaves in pieces, what is sent.

    Bytes for one sample: gathered_forward pass an all-gather, reduced_* an all-reduce in that direction. parts:
    what the number of devices has to divide, 0: the dim.
    """

    dim: str
    split_inputs: bool = False
    split_outputs: bool = False
    gathered_forward: float = 0.0
    reduced_forward: float = 0.0
    reduced_backward: float = 0.0
    parts: int = 0

    @property
    def collective_bytes(self) -> float:
        """Bytes a sample all-reduced in each direction, the mean of both; an all-gather counts half."""
        return (self.gathered_forward / 2 + self.reduced_forward + self.reduced_backward) / 2


def linear_pairs(graph: OperatorGraph) -> dict[int, int]:
    """First to second linear of each pair: nothing else reads what the first makes. Pairs do not overlap."""
    pairs: dict[int, int] = {}
    seconds: set[int] = set()
    for position in graph.topological:
        after = graph.successors[position]
        if position in seconds or len(after) != 1 or len(graph.predecessors[after[0]]) != 1:
            continue
        if graph.operators[position].kind == graph.operators[after[0]].kind == "linear":
            pairs[position] = after[0]
            seconds.add(after[0])
    return pairs


def region_split(work: OperatorWork, position: int, found: Regions) -> Split | None:
    """The split of an operator of a region, None outside. Linears that read the same input reduce its gradient
    together, a share each.
    """
    parts = found.parts.get(position, 0)
    if position in found.columns:
        reduced = work.input_bytes / found.columns[position] if work.input_has_gradient else 0.0
        return Split("out_features", split_outputs=True, reduced_backward=reduced, parts=parts)
    if position in found.rows:
        return Split("in_features", split_inputs=True, reduced_forward=work.output_bytes, parts=parts)
    if position in found.within:
        return Split(shared_dim(work.operator), split_inputs=True, split_outputs=True, parts=parts)
    return None


def split_of(work: OperatorWork, place: Literal["alone", "first", "second"]) -> Split | None:
    """The split of an operator, None where there is none. place: a linear's place in its pair."""
    output = work.output_bytes
    input_gradient = work.input_bytes if work.input_has_gradient else 0.0
    match work.operator.kind, place:
        case "attention", _:
            return Split("heads", reduced_forward=output, reduced_backward=input_gradient)
        case "conv2d", _:
            return Split(
                "out_channels", split_outputs=True, gathered_forward=output, reduced_backward=input_gradient
            )
        case "linear", "second":
            return Split("in_features", split_inputs=True, reduced_forward=output)
        case "linear", _:
            gathered = 0.0 if place == "first" else output
            return Split(
                "out_features", split_outputs=True, gathered_forward=gathered, reduced_backward=input_gradient
            )
    return None


def alternative_id(ways: int, split: str, again: Repeated) -> str:
    """The name of a way to run an operator. split: that of its split over `ways` devices."""
    word = {"none": "", "full": "recompute", "selective": "selective"}[again]
    return "-".join(part for part in (split if ways > 1 else "", word) if part)


RECOMPUTE_PAYS = 1.0
"""Recomputing is offered where an operator keeps its inputs and at least this many times as much besides."""


def tensor_parallel_alternative(
    work: OperatorWork, split: Split, saved: SavedBytes, roofline: Roofline, sizes: Sequence[int], ways: int
) -> Alternative:
    """The operator on `ways` devices; the time of its collectives is inside its times."""
    kernels = work.kernels(ways, split_inputs=split.split_inputs, split_outputs=split.split_outputs)
    forward = [
        roofline.seconds(kernels.forward, size)
        + roofline.all_gather_seconds(split.gathered_forward, size, ways)
        + roofline.all_reduce_seconds(split.reduced_forward, size, ways)
        for size in sizes
    ]
    backward = [
        _backward_seconds(roofline, kernels, size)
        + roofline.all_reduce_seconds(split.reduced_backward, size, ways)
        for size in sizes
    ]
    kept_inputs = saved.inputs / ways if split.split_inputs else saved.inputs
    # An all-gather moves half of what an all-reduce moves; the mean of both directions.
    collective = (split.gathered_forward / 2 + split.reduced_forward + split.reduced_backward) / 2
    return Alternative(
        id=f"tp{ways}",
        tensor_parallel=ways,
        forward_s=tuple(map(significant, forward)),
        backward_s=tuple(map(significant, backward)),
        parameter_bytes=-(-work.weight_bytes // ways),
        saved_bytes_per_sample=significant(kept_inputs + saved.own / ways),
        collective_bytes=significant(collective),
    )


def recompute_alternative(
    work: OperatorWork, saved: SavedBytes, roofline: Roofline, sizes: Sequence[int]
) -> Alternative | None:
    """Only the inputs are kept and the forward runs again before the backward; None where little is won."""
    if not kind_of(work.operator).reads_inputs or saved.own < RECOMPUTE_PAYS * work.input_bytes:
        return None
    kernels = work.kernels()
    forward = [roofline.seconds(kernels.forward, size) for size in sizes]
    backward = [_backward_seconds(roofline, kernels, size) for size in sizes]
    return Alternative(
        id="recompute",
        recompute=True,
        forward_s=tuple(map(significant, forward)),
        backward_s=tuple(significant(b + f) for f, b in zip(forward, backward, strict=True)),
        parameter_bytes=work.weight_bytes,
        saved_bytes_per_sample=significant(saved.inputs),
    )


def degrees(operator: Operator, split: Split, largest: int) -> Iterator[int]:
    """Powers of two from 2 to `largest` that divide the dim that is cut, or all those of its region."""
    ways = 2
    while ways <= largest:
        if (split.parts or operator.dims[split.dim]) % ways == 0:
            yield ways
        ways *= 2


def _backward_seconds(roofline: Roofline, kernels: Kernels, samples: int) -> float:
    return roofline.seconds(kernels.input_gradient, samples) + roofline.seconds(kernels.weight_gradient, samples)
