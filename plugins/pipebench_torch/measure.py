"""Times of operators run one after the other, and of the whole model, at one micro-batch size."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor

from pipebench_torch.machine import keep_freed_memory
from pipebench_torch.models import Model
from pipebench_torch.values import loss_of


@dataclass(slots=True)
class Samples:
    """Seconds of each repeat."""

    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Measured:
    """Medians by operator, and the median of the relative spread (half the middle quarters' width).

    saved, workspace: bytes by operator. whole: seconds of the whole model's forward and backward.
    """

    forward: list[float]
    backward: list[float]
    spread: float
    saved: list[int]
    workspace: list[int]
    whole: tuple[float, float]


class Stopwatch:
    """Seconds of work: of this thread on a CPU, whatever else the machine does; by events on a card."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def time(self, work: Callable[[], object]) -> tuple[object, float]:
        """What the work returns and how long it took."""
        if self.device.type != "cuda":
            start = time.thread_time()
            made = work()
            return made, time.thread_time() - start
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        made = work()
        end.record()
        torch.cuda.synchronize()
        return made, begin.elapsed_time(end) / 1e3


def measure(model: Model, samples: int, repeats: int, warmup: int, device: torch.device) -> Measured:
    """The medians of `repeats` passes after `warmup`. Every operator runs on what the one before it made."""
    model.ready(samples)
    if device.type == "cpu":
        keep_freed_memory()
    weights = {p.name: model.weight(p.name).to(device).requires_grad_() for p in model.graph.parameters}
    producers = enumerate(model.graph.producers)
    inputs = {t: model.input(t, samples).to(device) for t, producer in producers if producer < 0}
    watch = Stopwatch(device)
    own: Callable[[int, torch.device], Callable[[], Tensor]] | None = getattr(model, "whole", None)
    entire = own(samples, device) if own is not None else whole_of(model, weights, inputs, samples)
    taken = [Samples() for _ in model.graph.operators]
    whole = Samples()
    sizes = _Sizes(len(taken))
    for number in range(warmup + repeats):
        keep = number >= warmup
        one = _Pass(model, weights, inputs, samples, watch)
        one.run(taken if keep else None, sizes if number == 0 else None)
        del one
        for weight in weights.values():
            weight.grad = None
        forward, backward = _whole(entire, watch)
        if keep:
            whole.forward.append(forward)
            whole.backward.append(backward)
    every = [times for each in taken for times in (each.forward, each.backward)]
    return Measured(
        forward=[median(each.forward) for each in taken],
        backward=[median(each.backward) for each in taken],
        spread=_spread(every),
        saved=sizes.saved,
        workspace=sizes.workspace,
        whole=(median(whole.forward), median(whole.backward)),
    )


def _spread(every: list[list[float]]) -> float:
    """Half the range of the middle half of the repeats over the median, weighted by the median."""
    total = sum(median(times) for times in every)
    width = 0.0
    for times in every:
        ordered, cut = sorted(times), len(times) // 4
        width += (ordered[-1 - cut] - ordered[cut]) / 2
    return width / total if total else 0.0


class _Sizes:
    """Bytes that operators keep for their backward, each storage once: charged to the first that keeps it."""

    def __init__(self, operators: int) -> None:
        self.saved = [0] * operators
        self.workspace = [0] * operators
        self._seen: set[int] = set()
        self._held: list[Tensor] = []

    def ignore(self, tensors: dict[str, Tensor]) -> None:
        """Weights are kept anyway."""
        self._seen |= {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}

    def keep(self, operator: int, tensor: Tensor) -> Tensor:
        """Called by autograd for every tensor that it saves."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._held.append(tensor)  # so that no other storage takes its address
            self.saved[operator] += storage.nbytes()
        return tensor


class _Pass:
    """One forward and backward, operator by operator, cut apart so that each can be timed."""

    def __init__(
        self, model: Model, weights: dict[str, Tensor], inputs: dict[int, Tensor], samples: int, watch: Stopwatch
    ) -> None:
        self.model, self.weights, self.samples, self.watch = model, weights, samples, watch
        self.values: dict[int, Tensor] = dict(inputs)
        self.read: list[dict[int, Tensor]] = []
        self.made: list[dict[int, Tensor]] = []

    def run(self, taken: list[Samples] | None, sizes: _Sizes | None) -> None:
        graph = self.model.graph
        if sizes is not None:
            sizes.ignore(self.weights)
        self.read = [{} for _ in graph.operators]
        self.made = [{} for _ in graph.operators]
        for operator in graph.topological:
            seconds = self._forward(operator, sizes)
            if taken is not None:
                taken[operator].forward.append(seconds)
        gradients: dict[int, Tensor] = {}
        for operator in reversed(graph.topological):
            seconds = self._backward(operator, gradients)
            if taken is not None:
                taken[operator].backward.append(seconds)

    def _forward(self, operator: int, sizes: _Sizes | None) -> float:
        graph = self.model.graph
        read: dict[int, Tensor] = {}
        for name in graph.operators[operator].inputs:
            tensor = graph.tensor_index[name]
            leaf = self.values[tensor].detach()
            if leaf.is_floating_point() and graph.tensors[tensor].gradient_bytes_per_sample > 0:
                leaf.requires_grad_()
            read[tensor] = leaf
        self.read[operator] = read
        cuda = self.watch.device.type == "cuda"
        if sizes is not None and cuda:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        run = self.model.run

        def work() -> dict[int, Tensor]:
            return run(operator, read, self.weights, 0, (self.samples,))

        if sizes is None:
            made, seconds = self.watch.time(work)
        else:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.keep(operator, t), lambda t: t):
                made, seconds = self.watch.time(work)
            if cuda:
                held = torch.cuda.memory_allocated() - before
                sizes.workspace[operator] = max(0, torch.cuda.max_memory_allocated() - before - held)
        assert isinstance(made, dict)
        self.made[operator] = made
        self.values.update(made)
        return seconds

    def _backward(self, operator: int, gradients: dict[int, Tensor]) -> float:
        graph = self.model.graph
        outputs, given = [], []
        for tensor, value in self.made[operator].items():
            if value.requires_grad:
                outputs.append(value)
                incoming = gradients.get(tensor)
                given.append(torch.ones_like(value) if incoming is None else incoming)
        read = {tensor: leaf for tensor, leaf in self.read[operator].items() if leaf.requires_grad}
        used = [self.weights[name] for name in graph.operators[operator].parameters]
        wanted = [*read.values(), *used]
        self.made[operator] = {}
        if not outputs or not wanted:
            return 0.0
        found, seconds = self.watch.time(lambda: torch.autograd.grad(outputs, wanted, given, allow_unused=True))
        assert isinstance(found, tuple)
        for tensor, gradient in zip(read, found, strict=False):
            if gradient is not None:
                gradients[tensor] = gradients[tensor] + gradient if tensor in gradients else gradient
        self.read[operator] = {}
        return seconds


def whole_of(
    model: Model, weights: dict[str, Tensor], inputs: dict[int, Tensor], samples: int
) -> Callable[[], Tensor]:
    """The operators in one piece, as a function of nothing to the loss."""
    graph = model.graph

    def forward() -> Tensor:
        values = dict(inputs)
        losses: list[Tensor] = []
        for operator in graph.topological:
            made = model.run(operator, values, weights, 0, (samples,))
            values.update(made)
            for tensor, value in made.items():
                if not graph.consumers[tensor] and value.is_floating_point():
                    losses.append(loss_of(value, samples))
        return sum(losses[1:], losses[0])

    return forward


def _whole(forward: Callable[[], Tensor], watch: Stopwatch) -> tuple[float, float]:
    """The model in one piece: its forward, then one backward through all of it."""
    loss, forward_s = watch.time(forward)
    assert isinstance(loss, Tensor)
    _, backward_s = watch.time(loss.backward)
    return forward_s, backward_s
