"""Times of operators inside whole passes of a model, and of the model in one piece, at one micro-batch size."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import torch
from torch import Tensor

from pipebench_torch.machine import keep_freed_memory
from pipebench_torch.modules.models import StageableModel, learnt_from, loss_to_walk_back
from pipebench_torch.modules.walk import Walk
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.profiling.timed_pass import Clock, SavedStorages, TimedPass

Forward = Callable[[], Sequence[Tensor]]
"""The model in one piece, to those of its outputs that have a gradient."""


@dataclass(frozen=True, slots=True)
class Passes:
    """What a pass needs: weights with gradients that each pass adds to, inputs, and the model in one piece."""

    model: StageableModel
    samples: int
    weights: dict[str, Tensor]
    inputs: dict[int, Tensor]
    entire: Forward
    clock: Clock

    def timed_pass(self) -> TimedPass:
        """A pass that times each operator, not run yet."""
        self._forget()
        return TimedPass(self.model, self.weights, self.inputs, self.samples, self.clock)

    def whole(self) -> tuple[float, float]:
        """Run the forward and backward of the whole model. Returns the seconds of both."""
        self._forget()
        self.clock.hold()
        begin = self.clock.mark()
        outputs = self.entire()
        end = self.clock.mark()
        self.clock.hold()
        begin_backward = self.clock.mark()
        losses = [loss_to_walk_back(value, self.samples) for value in outputs]
        del outputs  # a loss keeps what it needs of them
        if losses:
            torch.autograd.backward(losses)
        marks = self.clock.mark()
        return self.clock.seconds([begin, end])[0], self.clock.seconds([begin_backward, marks])[0]

    def _forget(self) -> None:
        """Drop the gradients of inputs: they are handed on, not added up."""
        for value in self.inputs.values():
            value.grad = None


def passes_of(model: StageableModel, samples: int, device: torch.device) -> Passes:
    """The model on a device. Its gradients are zero to begin with, and each backward adds to them."""
    model.ready(samples)
    if device.type == "cpu":
        keep_freed_memory()
    weights = {p.name: model.weight(p.name, device).requires_grad_() for p in model.graph.parameters}
    for weight in weights.values():
        weight.grad = torch.zeros_like(weight)
    producers = enumerate(model.graph.producers)
    inputs = {t: model.input(t, samples).to(device) for t, producer in producers if producer < 0}
    for tensor, value in inputs.items():
        if learnt_from(model.graph, tensor, value):
            value.requires_grad_()
    own: Callable[[int, dict[str, Tensor]], Forward] | None = getattr(model, "whole", None)
    entire = own(samples, weights) if own is not None else whole_of(model, weights, inputs, samples)
    return Passes(model, samples, weights, inputs, entire, Clock(device))


def whole_of(
    model: StageableModel, weights: dict[str, Tensor], inputs: dict[int, Tensor], samples: int
) -> Forward:
    """The operators one after the other, without marks between them."""
    walk = Walk(model.graph, model.graph.topological)

    def forward() -> Sequence[Tensor]:
        left = walk.run(inputs, lambda op, read: model.run(op, read, weights, 0, (samples,)))
        return [value for value in left.values() if value.requires_grad]

    return forward


MOST_PASSES = 200


@dataclass(slots=True)
class PassTimes:
    """Seconds by operator, means over the middle half of the passes, and their relative spread.

    saved, workspace: bytes by operator.
    whole: seconds of the whole model's forward and backward, measured apart.
    otherwise: the same on a card in the other way: launched kernel by kernel where `whole` was queued, and queued
        where it was launched; 0 on a cpu.
    """

    forward: list[float]
    backward: list[float]
    spread: float
    saved: list[int]
    workspace: list[int]
    whole: tuple[float, float]
    otherwise: tuple[float, float] = (0.0, 0.0)


OTHER_PASSES = 5
"""Of a card, in the way that does not count."""
HELD_LONGER = 2.0
"""A pass is queued within so many times of what the fastest took that was not held."""


def measure(model: StageableModel, samples: int, options: ProfilerOptions, device: torch.device) -> PassTimes:
    """Means over the middle half of the passes after `warmup`, in turn with passes of the model in one piece.

    Passes are ordered by their sum, forward and backward apart. A median of each operator would leave out
    disturbances that hit now one operator and now another, and the sum would be less than any pass took. There are
    `repeats` passes, and more until they have taken `least_s` (at most MOST_PASSES). A card is held until each is
    queued, where the options say so. Gradients of weights are added to those that are there, as those of all
    micro-batches but the first are.
    """
    ready = passes_of(model, samples, device)
    storages = SavedStorages(len(model.graph.operators), ready.weights.values(), device)
    ready.timed_pass().run(storages)
    storages.release()
    card = ready.clock.cuda
    queued = card and options.queued
    warm = _run_passes(ready, max(options.warmup, int(card)), 0.0)
    enough_s = _enough(*warm) if card else 0.0
    ready.clock.held_s = enough_s if queued else 0.0
    passes, wholes = _run_passes(ready, options.repeats, options.least_s)
    ready.clock.held_s = 0.0 if queued else enough_s
    others = [ready.whole() for _ in range(OTHER_PASSES if card else 0)]
    forward, backward = [one.forward for one in passes], [one.backward for one in passes]
    return PassTimes(
        forward=middle_mean(forward),
        backward=middle_mean(backward),
        spread=_spread([*zip(*forward, strict=True), *zip(*backward, strict=True)]),
        saved=storages.saved,
        workspace=storages.workspace,
        whole=_middle_pair(wholes),
        otherwise=_middle_pair(others) if others else (0.0, 0.0),
    )


def _run_passes(ready: Passes, least: int, least_s: float) -> tuple[list[TimedPass], list[tuple[float, float]]]:
    """Passes operator by operator and in one piece, in turn: so many, and more until they have taken so long."""
    passes: list[TimedPass] = []
    wholes: list[tuple[float, float]] = []
    until_s = time.monotonic() + least_s
    while len(passes) < least or (time.monotonic() < until_s and len(passes) < MOST_PASSES):
        one = ready.timed_pass()
        one.run()
        passes.append(one)
        wholes.append(ready.whole())
    return passes, wholes


def _enough(passes: Sequence[TimedPass], wholes: Sequence[tuple[float, float]]) -> float:
    """Seconds within which the processor queues a forward or a backward of either kind of pass."""
    in_parts = min(max(sum(one.forward), sum(one.backward)) for one in passes)
    return HELD_LONGER * max(in_parts, min(max(spent) for spent in wholes))


def _middle_pair(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    forward, backward = (middle_mean([[spent] for spent in one])[0] for one in zip(*pairs, strict=True))
    return forward, backward


def middle_mean(passes: Sequence[Sequence[float]]) -> list[float]:
    """By position: the mean over the half of the passes whose sums are in the middle."""
    cut = len(passes) // 4
    kept = sorted(passes, key=sum)[cut : len(passes) - cut]
    return [fmean(times) for times in zip(*kept, strict=True)]


def _spread(every: Sequence[Sequence[float]]) -> float:
    """Half the range of the middle half of the repeats over the median, weighted by the median."""
    total = sum(median(times) for times in every)
    width = 0.0
    for times in every:
        ordered, cut = sorted(times), len(times) // 4
        width += (ordered[-1 - cut] - ordered[cut]) / 2
    return width / total if total else 0.0
