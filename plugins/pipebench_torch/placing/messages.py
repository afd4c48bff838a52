"""Every message of a run, the same list in every process: its position is its tag."""

from collections import defaultdict
from dataclasses import dataclass, field

from pipebench.costs.messages import messages
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.schedule import BACKWARD, FORWARD, INPUT_GRADIENT
from pipebench_torch.placing.layout import Layout, Span, overlap

TOKEN = -1
"""Stands for a tensor where an order edge sends no bytes, only that a task is done."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Samples `span` of a tensor (FORWARD) or of its gradient (BACKWARD), sent from one process to another.

    sender, receiver: stages.
    sent: the micro-batch of the sender that makes the piece.
    needed: the micro-batch of the receiver that waits for it.
    source, target: ranks.
    """

    tag: int
    kind: str
    tensor: int
    sender: int
    receiver: int
    sent: int
    needed: int
    source: int
    target: int
    span: Span

    @property
    def local(self) -> bool:
        """Whether it stays in its process."""
        return self.source == self.target


@dataclass(frozen=True)
class Traffic:
    """The pieces of a run by the task (rank, stage, micro-batch, kind) that makes them and that needs them."""

    pieces: list[Piece] = field(default_factory=list)
    made_by: dict[tuple[int, int, int, str], list[Piece]] = field(default_factory=lambda: defaultdict(list))
    needed_by: dict[tuple[int, int, int, str], list[Piece]] = field(default_factory=lambda: defaultdict(list))

    def sent_behind(self, rank: int, task: tuple[int, int, str]) -> list[Piece]:
        """What a process sends when a task (stage, micro-batch, letter of TASK_KINDS) has ended."""
        return self.made_by.get((rank, *as_whole(task)), [])

    def awaited_by(self, rank: int, task: tuple[int, int, str]) -> list[Piece]:
        """What a task of a process waits for."""
        return self.needed_by.get((rank, *as_whole(task)), [])


def as_whole(task: tuple[int, int, str]) -> tuple[int, int, str]:
    """Of a split backward the input gradient has the messages of the whole one."""
    stage, micro_batch, kind = task
    return stage, micro_batch, BACKWARD if kind == INPUT_GRADIENT else kind


def traffic_of(graph: OperatorGraph, layout: Layout) -> Traffic:
    """All pieces: tensors and gradients that cross between stages, then the tokens of order edges."""
    found = Traffic()
    crossing = [(m.source, m.target, m.tensor) for m in messages(graph, layout.plan)]
    data = {(source, target) for source, target, _ in crossing}
    crossing += [(*edge, TOKEN) for edge in layout.plan.order_edges if edge not in data]
    for source, target, tensor in crossing:
        _flow(found, layout, FORWARD, tensor, source, target)
        if tensor == TOKEN or graph.tensors[tensor].gradient_bytes_per_sample > 0:
            _flow(found, layout, BACKWARD, tensor, target, source)
    return found


def _flow(found: Traffic, layout: Layout, kind: str, tensor: int, sender: int, receiver: int) -> None:
    size = layout.plan.stages[receiver].micro_batch
    for sent in range(layout.count(sender)):
        for from_replica, made in layout.spans(sender, sent):
            for needed in range(made[0] // size, -(-made[1] // size)):
                for to_replica, read in layout.spans(receiver, needed):
                    span = overlap(made, read)
                    if span is None:
                        continue
                    for copy in range(layout.plan.copies):
                        source = layout.rank_of(sender, from_replica, copy)
                        target = layout.rank_of(receiver, to_replica, copy)
                        tag = len(found.pieces)
                        piece = Piece(tag, kind, tensor, sender, receiver, sent, needed, source, target, span)
                        found.pieces.append(piece)
                        found.made_by[source, sender, sent, kind].append(piece)
                        found.needed_by[target, receiver, needed, kind].append(piece)
