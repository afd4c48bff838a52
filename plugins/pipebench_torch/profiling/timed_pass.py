"""One forward and one backward of a whole model: when each operator's part began, and the bytes that it keeps."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from pipebench_torch.modules.models import StageableModel, loss_to_walk_back
from pipebench_torch.modules.walk import Walk

HELD_CYCLES = 20_000_000
"""Of the kernel by which the rate of a card's cycles is measured: some 10 ms."""


class Clock:
    """Marks instants and reads them once the work is done, so that nothing waits for a card in between.

    held_s: seconds for which a card is held before each pass. The processor queues the pass meanwhile; the card
        then runs it without a gap.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.cuda = device.type == "cuda"
        self.held_s = 0.0
        self._cycles_s = 0.0

    def hold(self) -> None:
        """Let a card wait for `held_s`; what is queued behind it waits as well."""
        if not self.cuda or not self.held_s:
            return
        if not self._cycles_s:
            marks = [self.mark()]
            torch.cuda._sleep(HELD_CYCLES)
            self._cycles_s = HELD_CYCLES / self.seconds([*marks, self.mark()])[0]
        torch.cuda._sleep(round(self.held_s * self._cycles_s))

    def mark(self) -> Any:
        """This instant."""
        if not self.cuda:
            return time.thread_time()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, marks: Sequence[Any]) -> list[float]:
        """Seconds between each mark and the next."""
        if not self.cuda:
            return [later - earlier for earlier, later in pairwise(marks)]
        torch.cuda.synchronize()
        return [earlier.elapsed_time(later) / 1e3 for earlier, later in pairwise(marks)]


class SavedStorages:
    """Bytes of storages. Each storage counts once, for the first operator that keeps it.

    saved: bytes by operator that stay until the backward: what autograd keeps, and the model's outputs.
    workspace: bytes by operator that it takes for a while, in either direction, above those before and after it;
        of one that makes an output of the model at least the output's gradient.
    """

    def __init__(self, operators: int, weights: Iterable[Tensor], device: torch.device) -> None:
        """weights: storages that are kept in any case and do not count."""
        self.saved = [0] * operators
        self.workspace = [0] * operators
        self._seen = {weight.untyped_storage().data_ptr() for weight in weights}
        self._held: list[Tensor] = []
        self._cuda = device.type == "cuda"
        self._running: tuple[int, int] | None = None

    def watch(self, operator: int, work: Callable[[], dict[int, Tensor]]) -> dict[int, Tensor]:
        """Count what autograd keeps of the tensors made by the work, and on a card what the work needs for a
        while.
        """
        self.turn_to(operator)
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: self.keep(operator, tensor), lambda t: t):
            made = work()
        self.turn_to(None)
        return made

    def release(self) -> None:
        """Give the memory back, once all has been counted."""
        self._held.clear()

    def turn_to(self, operator: int | None) -> None:
        """End the part of the operator before, and begin that of this operator (None: of no operator).

        The allocator of a card tells its peak without waiting for the card.
        """
        if not self._cuda:
            return
        now = torch.cuda.memory_allocated()
        if self._running is not None:
            last, before = self._running
            scratch = torch.cuda.max_memory_allocated() - max(before, now)
            self.workspace[last] = max(self.workspace[last], scratch)
        torch.cuda.reset_peak_memory_stats()
        self._running = None if operator is None else (operator, now)

    def keep(self, operator: int, tensor: Tensor) -> Tensor:
        """Count a tensor that stays until the backward. Returns it."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._held.append(tensor)  # so that no other storage takes its address
            self.saved[operator] += storage.nbytes()
        return tensor

    def keep_output(self, operator: int, output: Tensor) -> None:
        """Count an output of the model: it stays until its gradient is there, which is as large."""
        self.keep(operator, output)
        self.workspace[operator] = max(self.workspace[operator], output.nbytes)


class TimedPass:
    """forward, backward: seconds by operator, once `run` has returned."""

    def __init__(
        self,
        model: StageableModel,
        weights: Mapping[str, Tensor],
        inputs: Mapping[int, Tensor],
        samples: int,
        clock: Clock,
    ) -> None:
        self._model, self._weights, self._inputs = model, weights, inputs
        self._samples, self._clock = samples, clock
        self._steps: dict[Any, int] = {}
        self._began: list[tuple[int, Any]] = []
        self._storages: SavedStorages | None = None
        self._last: int | None = None
        self.forward = [0.0] * len(model.graph.operators)
        self.backward = [0.0] * len(model.graph.operators)

    def run(self, storages: SavedStorages | None = None) -> None:
        """Run forward and backward.

        storages: count the bytes that are kept; the times then mean nothing.
        """
        self._storages = storages
        self._clock.hold()
        losses = self._forward()
        self._steps.clear()
        if not losses:
            return
        self._clock.hold()
        start = self._clock.mark()
        if storages is not None:
            storages.turn_to(self._last)
        torch.autograd.backward(losses)
        if storages is not None:
            storages.turn_to(None)
        spent = self._clock.seconds([start, *(mark for _, mark in self._began), self._clock.mark()])
        order = [operator for operator, _ in self._began]
        for operator, seconds in zip(
            order[:1] + order, spent, strict=True
        ):  # starting autograd is the first one's
            self.backward[operator] += seconds

    def _forward(self) -> list[Tensor]:
        """Run the forward. Returns the losses of the outputs that have a gradient.

        An operator's part begins where the one before it has ended. Freeing tensors that nobody reads any more
        counts.
        """
        storages = self._storages
        marks = [self._clock.mark()]
        firsts: list[tuple[int, list[Any]]] = []

        def work(operator: int, read: dict[int, Tensor]) -> dict[int, Tensor]:
            return self._model.run(operator, read, self._weights, 0, (self._samples,))

        def timed(operator: int, read: dict[int, Tensor]) -> dict[int, Tensor]:
            if storages is None:
                made = work(operator, read)
            else:
                made = storages.watch(operator, lambda: work(operator, read))
            steps = [value.grad_fn for value in made.values()]
            firsts.append((operator, steps))
            self._last = operator if any(step is not None for step in steps) else self._last
            marks.append(self._clock.mark())
            return made

        graph = self._model.graph
        left = Walk(graph, graph.topological).run(self._inputs, timed)
        outputs = {tensor: value for tensor, value in left.items() if value.requires_grad}
        for (operator, steps), seconds in zip(firsts, self._clock.seconds(marks), strict=True):
            self.forward[operator] = seconds
            self._watch(operator, steps)
        if storages is not None:
            for tensor, value in outputs.items():
                if graph.producers[tensor] >= 0:
                    storages.keep_output(graph.producers[tensor], value)
        return [loss_to_walk_back(value, self._samples) for value in outputs.values()]

    def _watch(self, operator: int, steps: list[Any]) -> None:
        """Mark the instant before autograd's first step of the operator.

        A step belongs to the operator that made it, not to one that hands its input on.
        """
        for step in steps:
            if step is not None and step not in self._steps:
                self._steps[step] = operator
                step.register_prehook(lambda _, operator=operator: self._begin(operator))

    def _begin(self, operator: int) -> None:
        if self._storages is not None:
            self._storages.turn_to(operator)
        self._began.append((operator, self._clock.mark()))
