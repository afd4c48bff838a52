"""Gradients of the processes against those of a single one."""

from math import isnan

import torch
import torch.distributed as dist
from torch import Tensor

from pipebench_torch.machine import Machine
from pipebench_torch.modules.models import Model
from pipebench_torch.processes.job import Difference
from pipebench_torch.running.reference import reference_gradients
from pipebench_torch.running.runner import Runner
from pipebench_torch.running.stage import StageRun


def compare_gradients(model: Model, runner: Runner, mini_batch: int) -> Difference | None:
    """What rank 0 finds; None elsewhere. A parameter that several stages use counts as the sum of its parts.

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
                part = part if owner == 0 else _received(model.weight(name), owner, tag, machine)
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


def _received(like: Tensor, owner: int, tag: int, machine: Machine) -> Tensor:
    buffer = torch.empty_like(like) if machine.staged else torch.empty_like(like, device=machine.device)
    dist.recv(buffer, src=owner, tag=tag)
    return buffer
