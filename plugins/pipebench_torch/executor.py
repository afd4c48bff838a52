"""execute(problem, plan, schedule, context): the plan on real processes, and what they measured."""

import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import msgspec

from pipebench.costs.model import CostModel
from pipebench.domain.document import PlannedProblem
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.context import Context
from pipebench_torch.collect import trace_of
from pipebench_torch.job import JOB, REPORT, Difference, Job, Report, write
from pipebench_torch.launch import PortTaken, run_ranks
from pipebench_torch.plugin import ExecutorOptions
from pipebench_torch.rounds import rounds_of

PORT_TRIES = 3
MOST_VERIFIED_BYTES = 2 * 10**9
MOST_VERIFIED_S = 20.0
END_S = 1.0
"""Processes are told to give up this much before they are killed, so that they can say why."""


def execute(problem: Problem, plan: Plan, schedule: Schedule, context: Context) -> Trace:
    """Run the plan on processes of this machine. Gradients are compared first where options ask for it.

    Raises UnsupportedProblem for sharded or tensor-parallel stages and for operators that cannot be built, and
    PipebenchError: torch is not installed, a process failed or hung, gradients differ.
    """
    options = cast(ExecutorOptions, context.options)
    refuse_sharded(problem, plan)
    require_torch()
    layout, _ = rounds_of(problem, plan, schedule, options)
    planned = PlannedProblem(problem=problem, plan=plan, schedule=schedule)
    limit_s = options.timeout_s
    if context.deadline_s is not None:
        limit_s = min(limit_s, context.deadline_s - time.monotonic())
    if limit_s <= 0:
        raise PipebenchError("no time was left to run the plan")
    deadline_s = time.monotonic() + limit_s
    device, backend = _where(options, layout.world)
    job = Job(
        planned=planned,
        options=options,
        device=device,
        backend=backend,
        end_s=limit_s - END_S if limit_s > 2 * END_S else limit_s,
        data_bytes=_limits(problem, options, layout.devices * plan.copies) if device == "cpu" else (),
        verify=_verified(problem, options),
        seed=context.seed,
    )
    with tempfile.TemporaryDirectory(prefix="pipebench-") as name:
        folder = Path(name)
        write(folder / JOB, job)
        _run(folder, layout.world, deadline_s, options.port)
        reports = [
            msgspec.msgpack.decode((folder / REPORT.format(rank)).read_bytes(), type=Report)
            for rank in range(layout.world)
        ]
    _judge(reports[0].difference, options.tolerance, context)
    if reports[0].delay > 1:
        context.note(f"{reports[0].delay + 1} versions of the weights were held; the cost model counts 2")
    return trace_of(problem, plan, schedule, layout, reports)


def _run(folder: Path, world: int, deadline_s: float, port: int) -> None:
    command = [sys.executable, "-m", "pipebench_torch.worker", str(folder)]
    for attempt in range(PORT_TRIES):
        try:
            run_ranks(command, world, folder, deadline_s, port)
        except PortTaken:
            if port or attempt == PORT_TRIES - 1:
                raise
        else:
            return


def require_torch() -> None:
    """Raises PipebenchError with the remedy when torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise PipebenchError("torch is not installed", "pip install 'pipebench[torch]'")


def refuse_sharded(problem: Problem, plan: Plan) -> None:
    """Raises UnsupportedProblem for stages whose operators are split over devices."""
    for position, stage in enumerate(plan.stages):
        if stage.tensor_parallel > 1:
            raise UnsupportedProblem(
                f"stage {position} is tensor-parallel ({stage.tensor_parallel}): torch does not split operators"
            )
        if any(parts > 1 for split in stage.sharding for parts in split.values()):
            raise UnsupportedProblem(f"stage {position} shards its operators: torch does not split operators")
        costs = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
        for name, choice in zip(stage.operators, stage.choice, strict=False):
            if choice and _costs_of(problem, costs, name).alternative(choice).tensor_parallel > 1:
                raise UnsupportedProblem(f"operator {name!r} runs as {choice!r}: torch does not split operators")


def _costs_of(problem: Problem, costs: tuple[OperatorCosts, ...], name: str) -> OperatorCosts:
    return costs[problem.profile.graph.index[name]]


def _where(options: ExecutorOptions, world: int) -> tuple[str, str]:
    """Device and backend; a CUDA device is looked for only when it may be used."""
    device, backend = options.device, options.backend
    if device != "cpu":
        import torch

        cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if device == "cuda" and not cards:
            raise PipebenchError("device=cuda, and torch finds no CUDA device", "leave it out, or say device=cpu")
        device = "cuda" if cards >= world or (device == "cuda" and cards) else "cpu"
        if backend == "auto":
            backend = "nccl" if device == "cuda" and cards >= world else "gloo"
        if backend == "nccl" and (device == "cpu" or cards < world):
            raise PipebenchError(
                f"nccl needs a card for each of {world} processes, there are {cards}", "say backend=gloo"
            )
    elif backend == "nccl":
        raise PipebenchError("nccl sends between CUDA devices only", "say backend=gloo")
    return device, "gloo" if backend == "auto" else backend


def _limits(problem: Problem, options: ExecutorOptions, devices: tuple[int, ...]) -> tuple[int, ...]:
    """Private memory of each process: that of its device, or else an equal share of what the machine has left."""
    share = _available_bytes() // len(devices)
    held = [problem.cluster.type_of(device).memory_bytes for device in devices]
    return tuple(min(share, each) if options.limit_memory else share for each in held)


def _available_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 2**50
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), 2**50)


def _verified(problem: Problem, options: ExecutorOptions) -> bool:
    """Whether a single process should compute it too: always, never, or when the model is small."""
    if options.verify != "auto":
        return options.verify == "yes"
    model = CostModel(problem)
    costs = problem.profile.costs[0]
    largest = costs.micro_batches[-1]
    held = 3 * sum(problem.profile.graph.parameter_bytes.values())
    held += round(sum(each.saved_bytes_per_sample for each in costs.operators) * problem.mini_batch)
    forward, backward = model.times.at(largest)
    seconds = float(forward.sum() + backward.sum()) / 1e9 * problem.mini_batch / largest
    return held <= MOST_VERIFIED_BYTES and seconds <= MOST_VERIFIED_S


def _judge(difference: Difference | None, tolerance: float, context: Context) -> None:
    if difference is None:
        return
    if difference.worst > tolerance:
        raise PipebenchError(
            f"gradients differ from those of {difference.kind}: by {difference.worst:.2g} of the largest one in "
            f"{difference.name!r}, {tolerance:g} is allowed"
        )
    how = (
        "exactly"
        if difference.exact == difference.parameters
        else f"{difference.exact} of {difference.parameters} exactly, the rest to {difference.worst:.1g}"
    )
    context.note(f"gradients equal those of {difference.kind}: {how}")
