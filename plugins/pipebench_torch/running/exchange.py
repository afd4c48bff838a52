"""Messages between processes: receives posted in the sender's order, sends kept until they are done."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch.distributed as dist
from torch import Tensor

from pipebench_torch.machine import Machine
from pipebench_torch.placing.pieces import Piece

Room = Callable[[Piece], Tensor]
"""An empty tensor for a piece."""


@dataclass
class Exchange:
    """One process's messages of one run.

    A pair of processes has a channel each way, on which messages keep the sender's order: gloo finds them by tag,
    NCCL knows no tags and takes them in the order in which both sides post them. incoming: by channel, what will
    be sent to this process. groups: the channel's process group where the backend needs one of its own.
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
        """Post the receives up to these pieces, each channel in its order."""
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
        self.sent_at.append((piece.tag, self.machine.mark()))
        group = self.groups.get((piece.source, piece.target))
        work = dist.isend(ready, dst=piece.target, group=group, tag=piece.tag)
        self._sends.append((work, ready))
        self._sends = [each for each in self._sends if not each[0].is_completed()]

    def finish(self) -> None:
        """Wait for every send."""
        for work, _ in self._sends:
            work.wait()
        self._sends.clear()
