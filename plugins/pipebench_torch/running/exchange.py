"""Messages between processes: who sends to whom, receives and sends, gradients of replicas, a common start."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pipebench_torch.machine import Machine
from pipebench_torch.placing.layout import Layout
from pipebench_torch.placing.messages import Piece, Traffic


def replica_groups(layout: Layout, rank: int, machine: Machine) -> dict[int, Any]:
    """Process groups of replicas by stage; every process makes all, in one order.

    Replicas in turn reach their sums at different times. Over NCCL they meet beforehand, as those of a channel.
    """
    found = {}
    for stage in range(len(layout.plan.stages)):
        ranks = layout.ranks_of(stage)
        if len(ranks) > 1:
            group = dist.new_group(list(ranks))
            if rank in ranks:
                found[stage] = group
    for stage, group in found.items():
        if layout.plan.stages[stage].turns > 1 and not machine.staged:
            dist.all_reduce(torch.zeros(1, device=machine.device), group=group)
            machine.settle()
    return found


def channel_groups(traffic: Traffic, rank: int, machine: Machine) -> dict[tuple[int, int], Any]:
    """A process group for each pair of processes of which one sends to the other, by (source, target).

    Each is used once, in an order that all processes share: NCCL connects two processes when they first exchange
    something and holds both until then, so that a ring of processes that begin with different channels would wait
    for ever.
    """
    found = {}
    pairs = sorted({(piece.source, piece.target) for piece in traffic.pieces if not piece.local})
    for pair in pairs:
        group = dist.new_group(sorted(pair))
        if rank in pair:
            found[pair] = group
    for (source, target), group in found.items():
        word = torch.zeros(1, device=machine.device)
        if rank == source:
            dist.send(word, dst=target, group=group)
        else:
            dist.recv(word, src=source, group=group)
        machine.settle()
    return found


LEAD_NS = 10_000_000
"""From the word to the start: longer than processes take to hear of it."""


def broadcast_value(value: int, machine: Machine) -> int:
    """The value of rank 0, in every process."""
    where = torch.device("cpu") if machine.staged else machine.device
    box = torch.tensor([value], dtype=torch.int64, device=where)
    dist.broadcast(box, src=0)
    return int(box.item())


def start_together(machine: Machine, offset_ns: int) -> None:
    """Return at the same instant in all processes.

    Processes leave a barrier milliseconds apart, and one that left it late would seem to compute slowly. The
    processor is kept awake meanwhile.

    offset_ns: from this clock to that of rank 0.
    """
    dist.barrier()
    instant = broadcast_value(time.monotonic_ns() + offset_ns + LEAD_NS, machine)
    while time.monotonic_ns() + offset_ns < instant:
        pass


BUCKET_BYTES = 25 * 2**20
"""Of one message, as in DistributedDataParallel (Li et al., VLDB 2020, section 3.2.3): a message for every weight
would cost the latency of a ring each.
"""


def zeros_in_buckets(
    weights: Mapping[str, Tensor], names: Sequence[str]
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Zeros like the weights, each a part of one of a few long tensors: these, and the parts by name.

    A long tensor ends where bytes or number formats do not fit into one message. All replicas list the weights in
    this order.
    """
    buckets: list[Tensor] = []
    parts: dict[str, Tensor] = {}
    for bucket in _buckets(weights, names):
        lengths = [weights[name].numel() for name in bucket]
        first = weights[bucket[0]]
        long = torch.zeros(sum(lengths), dtype=first.dtype, device=first.device)
        buckets.append(long)
        for name, part in zip(bucket, long.split(lengths), strict=True):
            parts[name] = part.view(weights[name].shape)
    return buckets, parts


def _buckets(weights: Mapping[str, Tensor], names: Sequence[str]) -> Iterator[list[str]]:
    bucket: list[str] = []
    held = 0
    for name in names:
        value = weights[name]
        more = value.numel() * value.element_size()
        if bucket and (held + more > BUCKET_BYTES or value.dtype != weights[bucket[0]].dtype):
            yield bucket
            bucket, held = [], 0
        bucket.append(name)
        held += more
    if bucket:
        yield bucket


class Addition:
    """Sums of buckets over the replicas, under way: begun when it is made, in the buckets when it is finished.

    Nothing must be added to the buckets meanwhile.
    """

    def __init__(self, buckets: Sequence[Tensor], group: Any, machine: Machine) -> None:
        self._parts: list[tuple[Tensor, Tensor, Any]] = []
        for bucket in buckets:
            ready = machine.sending(bucket)
            self._parts.append((bucket, ready, dist.all_reduce(ready, group=group, async_op=True)))

    def finish(self) -> None:
        """Wait until all replicas have given their part."""
        for bucket, ready, work in self._parts:
            work.wait()
            if ready is not bucket:
                bucket.copy_(ready)


Room = Callable[[Piece], Tensor]
"""An empty tensor for a piece."""


@dataclass
class Exchange:
    """The messages of one process in one run.

    Each pair of processes has a channel each way, on which messages keep the sender's order. gloo finds a message
    by its tag. NCCL knows no tags and takes messages in the order in which both sides post them.

    incoming: by channel, what will be sent to this process.
    groups: the process group of a channel, where the backend needs one of its own.
    """

    machine: Machine
    room: Room
    incoming: dict[int, list[Piece]]
    groups: dict[tuple[int, int], Any] = field(default_factory=dict)
    sent_at: list[tuple[int, Any]] = field(default_factory=list)
    got_at: list[tuple[int, Any]] = field(default_factory=list)
    _posted: dict[int, tuple[Any, Tensor]] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=dict)
    _place: dict[int, int] = field(default_factory=dict)
    _sends: list[tuple[Any, Tensor]] = field(default_factory=list)
    _local: dict[int, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pieces in self.incoming.values():
            self._place.update({piece.tag: place for place, piece in enumerate(pieces)})

    def expect(self, pieces: Iterable[Piece]) -> None:
        """Post the receives up to these pieces, in the order of each channel."""
        for piece in pieces:
            if piece.local:
                continue
            channel = self.incoming[piece.source]
            start = self._next.get(piece.source, 0)
            for each in channel[start : self._place[piece.tag] + 1]:
                buffer = self.room(each)
                group = self.groups.get((each.source, each.target))
                work = dist.irecv(buffer, src=each.source, group=group, tag=each.tag)
                self._posted[each.tag] = (work, buffer)
            self._next[piece.source] = max(start, self._place[piece.tag] + 1)

    def take(self, piece: Piece) -> Tensor:
        """Wait for a piece."""
        if piece.local:
            return self._local.pop(piece.tag)
        work, buffer = self._posted.pop(piece.tag)
        work.wait()
        self.got_at.append((piece.tag, self.machine.mark()))
        return buffer.to(self.machine.device)

    def give(self, piece: Piece, value: Tensor) -> None:
        """Start to send a piece, or keep it for another stage of this process."""
        if piece.local:
            self._local[piece.tag] = value
            return
        ready = self.machine.sending(value)
        self.machine.give_way()  # the receiver may have said that it is ready
        self.sent_at.append((piece.tag, self.machine.mark()))
        group = self.groups.get((piece.source, piece.target))
        work = dist.isend(ready, dst=piece.target, group=group, tag=piece.tag)
        self._sends.append((work, ready))
        self._sends = [each for each in self._sends if not each[0].is_completed()]
        self.machine.give_way()

    def finish(self) -> None:
        """Wait for every send."""
        for work, _ in self._sends:
            work.wait()
        self._sends.clear()
