"""A model with weights and inputs for one micro-batch size, to be run in one piece or operator by operator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipebench_torch.machine import keep_freed_memory
from pipebench_torch.modules.models import Model
from pipebench_torch.modules.values import learnt_from
from pipebench_torch.profiling.clock import Clock
from pipebench_torch.profiling.timed_pass import TimedPass, gradient_of, walk

Forward = Callable[[], Sequence[Tensor]]
"""The model in one piece, to those of its outputs that have a gradient."""


@dataclass(frozen=True, slots=True)
class Passes:
    """Weights with the gradients that are added to, inputs, and the model in one piece."""

    model: Model
    samples: int
    weights: dict[str, Tensor]
    inputs: dict[int, Tensor]
    entire: Forward
    clock: Clock

    def timed(self) -> TimedPass:
        """One that is still to be run."""
        self._forget()
        return TimedPass(self.model, self.weights, self.inputs, self.samples, self.clock)

    def whole(self) -> tuple[float, float]:
        """Run the forward and one backward through all of it; their seconds."""
        self._forget()
        begin = self.clock.mark()
        outputs = self.entire()
        end = self.clock.mark()
        given = [gradient_of(value, self.samples) for value in outputs]
        begin_backward = self.clock.mark()
        if outputs:
            torch.autograd.backward(outputs, given)
        marks = self.clock.mark()
        return self.clock.seconds([begin, end])[0], self.clock.seconds([begin_backward, marks])[0]

    def _forget(self) -> None:
        """Gradients of inputs are handed on, not added up."""
        for value in self.inputs.values():
            value.grad = None


def passes_of(model: Model, samples: int, device: torch.device) -> Passes:
    """The model on a device. Its gradients are zero to begin with, and each backward adds to them."""
    model.ready(samples)
    if device.type == "cpu":
        keep_freed_memory()
    weights = {p.name: model.weight(p.name).to(device).requires_grad_() for p in model.graph.parameters}
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


def whole_of(model: Model, weights: dict[str, Tensor], inputs: dict[int, Tensor], samples: int) -> Forward:
    """The operators one after the other without a look at the clock."""
    return lambda: walk(model.graph, inputs, lambda op, read: model.run(op, read, weights, 0, (samples,)))
