"""Gradients of the processes against those of a single one without stages, which every cut must reproduce."""

from collections.abc import Callable
from math import isnan

import torch
import torch.distributed as dist
from torch import Tensor

from pipebench.costs.messages import stage_of_operators
from pipebench_torch.machine import Machine
from pipebench_torch.modules.models import StageableModel, loss_of
from pipebench_torch.placing.layout import Layout
from pipebench_torch.processes.job import Difference
from pipebench_torch.running.runner import Runner
from pipebench_torch.running.stage import StageRun
from pipebench_torch.running.updates import RATE


def reference_gradients(model: StageableModel, layout: Layout, mini_batch: int, delay: int) -> dict[str, Tensor]:
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


def _groups(model: StageableModel, layout: Layout) -> Callable[[int], list[int]]:
    """For each operator how many samples of a chunk its stage computes together."""
    stage_of = stage_of_operators(model.graph, layout.plan)

    def groups(operator: int) -> list[int]:
        stage = stage_of[operator]
        count = layout.chunk // layout.plan.stages[stage].micro_batch
        return [end - start for each in range(count) for _, (start, end) in layout.spans(stage, each)]

    return groups


def _loss(
    model: StageableModel,
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


def compare_gradients(model: StageableModel, runner: Runner, mini_batch: int) -> Difference | None:
    """Compare with a single process; rank 0 returns the difference, the others None.

    A parameter that several stages use counts as the sum of its parts.

    model: for the single process, in host memory.
    """
    layout, stages, rank, machine, delay = runner.layout, runner.stages, runner.rank, runner.machine, runner.delay
    expected = reference_gradients(model, layout, mini_batch, delay) if rank == 0 else {}
    graph = model.graph
    last = layout.rounds - 1
    compared = exact = 0
    worst, worst_name = 0.0, ""
    for parameter in graph.parameters:
        name = parameter.name
        users = {op.name for op in graph.operators if name in op.parameters}
        holders = [s for s, stage in enumerate(layout.plan.stages) if users & set(stage.operators)]
        total: Tensor | None = None
        for tag, stage in enumerate(holders):
            owner = layout.rank_of(stage, 0, 0)
            part = _part(stages.get(stage), last, name, rank == owner)
            if rank == 0:
                part = part if owner == 0 else _receive_like(model.weight(name), owner, tag, machine)
                assert part is not None
                total = part if total is None else total + part
            elif rank == owner and part is not None:
                dist.send(machine.sending(part), dst=0, tag=tag)
        if rank == 0 and total is not None:
            wanted = expected.get(name, torch.zeros_like(total)).cpu()
            total = total.cpu()
            compared += 1
            exact += int(torch.equal(total, wanted))
            largest = float(wanted.abs().max())
            apart = float((total - wanted).abs().max()) / (largest or 1.0)
            if isnan(apart) or apart > worst:
                worst, worst_name = float("inf") if isnan(apart) else apart, name
    if rank != 0:
        return None
    kind = "a single process" if layout.rounds == 1 else f"a single process with weights {delay} updates old"
    numbers = str(model.dtype).removeprefix("torch.")
    rounding = torch.finfo(model.dtype).eps
    return Difference(
        parameters=compared,
        exact=exact,
        worst=worst,
        name=worst_name,
        kind=kind,
        numbers=numbers,
        rounding=rounding,
    )


def _part(stage: StageRun | None, round_: int, name: str, owner: bool) -> Tensor | None:
    if stage is None or not owner:
        return None
    found = stage.gradients.get(round_, {}).get(name)
    return torch.zeros_like(stage.versions[0][name]).detach() if found is None else found


def _receive_like(like: Tensor, owner: int, tag: int, machine: Machine) -> Tensor:
    buffer = torch.empty_like(like) if machine.staged else torch.empty_like(like, device=machine.device)
    dist.recv(buffer, src=owner, tag=tag)
    return buffer
