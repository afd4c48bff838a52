"""One process's part of a run: its tasks in order, what they wait for and what they send."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pipebench.domain.errors import UnsupportedProblem
from pipebench_torch.machine import Machine
from pipebench_torch.modules.models import StageableModel
from pipebench_torch.placing.layout import Layout, Span
from pipebench_torch.placing.messages import TOKEN, Piece, Traffic
from pipebench_torch.placing.orders import Task
from pipebench_torch.processes.job import Status
from pipebench_torch.running.exchange import Exchange, start_together
from pipebench_torch.running.stage import StageRun
from pipebench_torch.running.updates import Updates


@dataclass
class Record:
    """Marks of one run.

    tasks: each task with its begin and end.
    sent, got: messages by tag.
    memory: bytes at task boundaries.
    """

    begun: Any = None
    tasks: list[tuple[Task, Any, Any]] = field(default_factory=list)
    sent: list[tuple[int, Any]] = field(default_factory=list)
    got: list[tuple[int, Any]] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)
    ended: Any = None


class Runner:
    """The stages of one process and how they run."""

    def __init__(
        self,
        model: StageableModel,
        layout: Layout,
        stages: dict[int, StageRun],
        tasks: Sequence[Task],
        traffic: Traffic,
        rank: int,
        machine: Machine,
        status: Status,
    ) -> None:
        self.model, self.layout, self.stages, self.tasks = model, layout, stages, tasks
        self.traffic, self.rank, self.machine, self.status = traffic, rank, machine, status
        self.delay, self.ahead, self.offset_ns = 0, 3, 0
        self.chain: tuple[int, ...] = ()
        self.channels: dict[tuple[int, int], Any] = {}
        self.replicas: dict[int, Any] = {}
        self._inputs: dict[int, Tensor] = {}
        self._incoming: dict[int, list[Piece]] = {}
        self._exchange: Exchange | None = None
        self._updates: Updates | None = None

    def prepare(self, order_of: Mapping[int, Sequence[Task]]) -> None:
        """Make weights and inputs, and find the order in which each other process sends.

        order_of: the tasks of every rank.
        """
        for position, stage in self.stages.items():
            stage.replicated = position in self.replicas
            device = self.machine.device
            weights = {name: self.model.weight(name, device) for name in stage.parameters}
            stage.versions = {0: {name: weight.requires_grad_() for name, weight in weights.items()}}
            for tensor in stage.model_inputs:
                if tensor not in self._inputs:
                    whole = self.model.input(tensor, self.layout.samples * self.layout.plan.copies)
                    self._inputs[tensor] = whole.to(self.machine.device)
        incoming: dict[int, list[Piece]] = defaultdict(list)
        for source, tasks in order_of.items():
            for task in tasks:
                incoming[source] += [
                    p for p in self.traffic.sent_behind(source, task) if p.target == self.rank and not p.local
                ]
        self._incoming = dict(incoming)
        self._updates = Updates(self.layout, self.stages, self.tasks, self.replicas, self.machine, self.delay)

    def held_bytes(self) -> int:
        """Bytes of weights, which stay from run to run. Drops gradients and later versions.

        The mini-batch's inputs stay as well, so that no run waits for them; they are no part of a plan.
        """
        self._forget()
        kept = [weight for stage in self.stages.values() for weight in stage.versions[0].values()]
        return sum(tensor.numel() * tensor.element_size() for tensor in kept)

    def _forget(self) -> None:
        for stage in self.stages.values():
            stage.gradients.clear()
            stage.buckets.clear()
            stage.live.clear()
            for version in [version for version in stage.versions if version > 0]:
                del stage.versions[version]

    def run(self, watch_memory: bool = False) -> Record:
        """Run all tasks once. Gradients of the stages are replaced."""
        self._forget()
        record = Record()
        exchange = Exchange(self.machine, self._room, self._incoming, self.channels)
        self._exchange = exchange
        waits = [self.traffic.awaited_by(self.rank, task) for task in self.tasks]
        if self.machine.staged:  # NCCL's receives would keep the card from what comes before the start
            for pieces in waits[: self.ahead]:
                exchange.expect(pieces)
        updates = self._updates
        assert updates is not None
        self._begin(record)
        updates.begin()
        for position in range(len(self.tasks)):
            exchange.expect(waits[position])
            self._task(position, waits, exchange, updates, record, watch_memory)
        self.status.say("waiting until its messages are received")
        exchange.finish()
        updates.finish()
        self.machine.settle()
        record.ended = self.machine.mark()
        record.sent, record.got = exchange.sent_at, exchange.got_at
        return record

    def _begin(self, record: Record) -> None:
        self.machine.begin()
        start_together(self.machine, self.offset_ns)
        record.begun = self.machine.mark()

    def _task(
        self,
        position: int,
        waits: list[list[Piece]],
        exchange: Exchange,
        updates: Updates,
        record: Record,
        watch_memory: bool,
    ) -> None:
        """Run one task once its inputs are there, and hand its messages over.

        Where nothing was waited for it begins when the task before it ended: posting receives and sends takes the
        processor as well.
        """
        stage, micro_batch, kind = task = self.tasks[position]
        pieces = waits[position]
        name = f"{kind} of stage {stage}, micro-batch {micro_batch}"
        for piece in pieces:
            if not piece.local:
                self.status.say(f"waiting for rank {piece.source}: {name}")
        free = record.tasks[-1][2] if record.tasks else record.begun
        called = self.machine.mark()
        received = [(piece, exchange.take(piece)) for piece in pieces]
        if kind == "F" and self.layout.plan.stages[stage].turns > 1:
            self.status.say(f"waiting for the other replicas: {name}")
            updates.reach(stage, self._version(stage, micro_batch))
        self.status.say(f"running {name}")
        if watch_memory:
            self.machine.reset_peak()
            before = self.machine.memory_bytes()
        begin = self.machine.begin_of_task(free, called, self.machine.mark())
        for later in waits[position + 1 : position + self.ahead + 1]:
            exchange.expect(later)
        made = self._compute(task, received, updates)
        updates.after(position)
        record.tasks.append((task, begin, self.machine.mark()))
        if watch_memory:
            self.machine.settle()
            record.memory.append((max(before, self.machine.peak_bytes()), self.machine.memory_bytes()))
        self._hand_over(task, made, exchange)

    def _hand_over(self, task: Task, made: dict[int, Tensor], exchange: Exchange) -> None:
        stage, micro_batch, _ = task
        pieces = self.traffic.sent_behind(self.rank, task)
        if not pieces:
            return
        span = self.layout.span(stage, micro_batch, self.layout.replica_of(stage, self.rank))
        for piece in pieces:
            if piece.tensor == TOKEN:
                exchange.give(piece, torch.zeros(1, device=self.machine.device))
            else:
                exchange.give(piece, _samples_of(made[piece.tensor], piece, span))

    def _version(self, stage: int, micro_batch: int) -> int:
        """Of the weights on which a micro-batch runs."""
        return max(0, self.layout.round_of(stage, micro_batch) - self.delay)

    def _compute(self, task: Task, received: list[tuple[Piece, Tensor]], updates: Updates) -> dict[int, Tensor]:
        stage, micro_batch, kind = task
        run, layout = self.stages[stage], self.layout
        if kind == "R":
            updates.add(stage, 0)
            return {}
        round_ = layout.round_of(stage, micro_batch)
        span = layout.span(stage, micro_batch, layout.replica_of(stage, self.rank))
        groups = (span[1] - span[0],)
        tensors = _assemble_tensors(received)
        if kind == "F":
            first = layout.copy_of(self.rank) * layout.samples + span[0] % layout.samples
            for tensor in run.model_inputs:
                tensors[tensor] = self._inputs[tensor][first : first + groups[0]].detach().clone()
            return run.forward(micro_batch, tensors, self._version(stage, micro_batch), first, groups)
        return run.backward(micro_batch, tensors, kind, round_, groups)

    def _room(self, piece: Piece) -> Tensor:
        token = piece.tensor == TOKEN
        buffer = torch.empty(1) if token else self.model.buffer(piece.tensor, piece.span[1] - piece.span[0])
        return buffer if self.machine.staged else buffer.to(self.machine.device)


def _samples_of(value: Tensor, piece: Piece, span: Span) -> Tensor:
    """The samples of a piece. Raises UnsupportedProblem where samples are not the first axis."""
    if piece.span == span:
        return value
    if value.shape[0] != span[1] - span[0]:
        raise UnsupportedProblem(f"tensor {piece.tensor} of shape {tuple(value.shape)} cannot be cut by samples")
    return value[piece.span[0] - span[0] : piece.span[1] - span[0]]


def _assemble_tensors(received: list[tuple[Piece, Tensor]]) -> dict[int, Tensor]:
    """The tensors of a task from their pieces.

    Pieces are joined along the samples; gradients of several readers are added.
    """
    parts: dict[int, dict[int, list[tuple[int, Tensor]]]] = {}
    for piece, value in received:
        if piece.tensor != TOKEN:
            parts.setdefault(piece.tensor, {}).setdefault(piece.sender, []).append((piece.span[0], value))
    found: dict[int, Tensor] = {}
    for tensor, senders in parts.items():
        for sender in sorted(senders, reverse=True):  # as autograd adds them, the last reader first
            pieces = [value for _, value in sorted(senders[sender], key=lambda part: part[0])]
            whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
            found[tensor] = found[tensor] + whole if tensor in found else whole
    return found
