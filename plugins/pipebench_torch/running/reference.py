"""The same mini-batches in a single process, without stages: what every cut of the model must reproduce."""

from collections.abc import Callable

import torch
from torch import Tensor

from pipebench.costs.messages import stage_of_operators
from pipebench_torch.modules.models import Model
from pipebench_torch.modules.values import loss_of
from pipebench_torch.placing.layout import Layout
from pipebench_torch.running.runner import RATE


def reference_gradients(model: Model, layout: Layout, mini_batch: int, delay: int) -> dict[str, Tensor]:
    """Gradients of the last of `layout.rounds` mini-batches, by parameter.

    Mini-batch t is computed on the weights after max(0, t - delay) steps. The model runs as a whole on chunks of
    samples that are whole micro-batches of every stage; only statistics over samples follow the stages' parts.
    """
    graph = model.graph
    names = sorted({name for operator in graph.operators for name in operator.parameters})
    versions = [{name: model.weight(name).requires_grad_() for name in names}]
    inputs = {t: model.input(t, mini_batch) for t, producer in enumerate(graph.producers) if producer < 0}
    groups = _groups(model, layout)
    gradients: dict[str, Tensor] = {}
    for round_ in range(layout.rounds):
        weights = versions[max(0, round_ - delay)]
        gradients = {}
        for first in range(0, mini_batch, layout.chunk):
            part = {tensor: value[first : first + layout.chunk] for tensor, value in inputs.items()}
            loss = _loss(model, part, weights, first, groups, mini_batch)
            found = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
            for name, gradient in zip(weights, found, strict=True):
                if gradient is not None:
                    gradients[name] = gradients[name] + gradient if name in gradients else gradient
        newest = versions[-1]
        with torch.no_grad():
            stepped = {n: w - RATE * gradients[n] if n in gradients else w.detach() for n, w in newest.items()}
        versions.append({name: value.requires_grad_() for name, value in stepped.items()})
        if round_ > delay:
            versions[round_ - delay - 1] = {}
    return gradients


def _groups(model: Model, layout: Layout) -> Callable[[int], list[int]]:
    """For each operator how many samples of a chunk its stage computes together."""
    stage_of = stage_of_operators(model.graph, layout.plan)

    def groups(operator: int) -> list[int]:
        stage = stage_of[operator]
        count = layout.chunk // layout.plan.stages[stage].micro_batch
        return [end - start for each in range(count) for _, (start, end) in layout.spans(stage, each)]

    return groups


def _loss(
    model: Model,
    inputs: dict[int, Tensor],
    weights: dict[str, Tensor],
    first: int,
    groups: Callable[[int], list[int]],
    mini_batch: int,
) -> Tensor:
    graph = model.graph
    values = dict(inputs)
    losses: list[Tensor] = []
    for operator in graph.topological:
        made = model.run(operator, values, weights, first, groups(operator))
        values.update(made)
        if not graph.operators[operator].constant:
            losses += [
                loss_of(value, mini_batch)
                for tensor, value in made.items()
                if not graph.consumers[tensor] and value.is_floating_point()
            ]
    return sum(losses[1:], losses[0])
