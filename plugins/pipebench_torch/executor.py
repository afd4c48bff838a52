"""execute(problem, plan, schedule, context): the plan on real processes, and what they measured."""

import hashlib
import sys
import time
from importlib.metadata import version
from typing import cast

import msgspec

from pipebench.costs.model import CostModel
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import ELEMENT_BYTES, OperatorCosts
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.context import Context
from pipebench.system.scratch import scratch_folder
from pipebench_torch.collect import trace_of
from pipebench_torch.modules.names import model_to_build
from pipebench_torch.placing.chains import chain_of
from pipebench_torch.placing.layout import Layout
from pipebench_torch.placing.orders import rounds_of
from pipebench_torch.plugin import ExecutorOptions
from pipebench_torch.processes.cores import cores_for
from pipebench_torch.processes.job import JOB, Difference, Job, ProcessReport, read_report, write
from pipebench_torch.processes.launch import run_ranks
from pipebench_torch.processes.nodes import device_and_backend, memory_limits, node_of, require_torch

ROUNDINGS = 1000
"""Most roundings by which a gradient may differ: 2e-13 in float64."""


def judge_gradients(difference: Difference | None, tolerance: float, context: Context) -> None:
    """Raise PipebenchError where gradients differ by more than rounding.

    Sums over micro-batches and replicas are rounded in another order than in a single process, so a few roundings
    of the number format are no difference.
    """
    if difference is None:
        return
    allowed = tolerance or ROUNDINGS * difference.rounding
    if not difference.worst <= allowed:
        raise PipebenchError(
            f"gradients differ from those of {difference.kind}: by {difference.worst:.2g} of the largest one in "
            f"{difference.name!r}, {allowed:.2g} is allowed in {difference.numbers}"
        )
    how = (
        "exactly"
        if difference.exact == difference.parameters
        else f"{difference.exact} of {difference.parameters} exactly, the rest to {difference.worst:.1g}"
    )
    context.note(f"gradients equal those of {difference.kind}: {how}, in {difference.numbers}")


def note_other_device(problem: Problem, layout: Layout, device: str, name: str, context: Context) -> None:
    """Note when the simulated costs are of another device than the one that ran.

    The error then compares two devices.
    """
    types = {problem.cluster.type_of(each).name for each in layout.devices}
    origin = problem.profile.provenance
    measured = origin.profiler.startswith("torch")
    if origin.device == name if measured else types <= {device, name}:
        return
    of = origin.device if measured else ", ".join(sorted(types))
    context.note(
        f"the profile is of {of} and this ran on {name}: the error compares two devices; plan with a profile of "
        f"this one: pipebench profile MODEL --profiler torch --device {device} -o FILE"
    )


MOST_VERIFIED_BYTES = 2 * 10**9
MOST_VERIFIED_S = 40.0
FLOAT64_BYTES = 8
END_S = 1.0
"""Processes are told to give up this much before they are killed, so that they can say why."""


def execute(problem: Problem, plan: Plan, schedule: Schedule, context: Context) -> Trace:
    """Run the plan on processes of this machine, or of several machines that are all given it.

    Gradients are compared first where the options ask for it.

    Raises UnsupportedProblem for sharded or tensor-parallel stages and for operators that cannot be built. Raises
    PipebenchError when torch is not installed, when a process failed or hung, or when gradients differ.
    """
    options = cast(ExecutorOptions, context.options)
    refuse_sharded(problem, plan)
    captured = model_to_build(problem.profile, options.model, context.trusted)
    require_torch()
    layout, _ = rounds_of(problem, plan, schedule, options)
    node = node_of(options, layout.world)
    chain = chain_of(problem, plan, schedule) if options.engine == "pipelining" else ()
    planned = PlannedProblem(problem=problem, plan=plan, schedule=schedule)
    limit_s = options.timeout_s
    if context.deadline_s is not None:
        limit_s = min(limit_s, context.deadline_s - time.monotonic())
    if limit_s <= 0:
        raise PipebenchError("no time was left to run the plan")
    deadline_s = time.monotonic() + limit_s
    device, backend = device_and_backend(options.device, options.backend, node.processes[node.rank])
    if chain and (device, backend) == ("cuda", "gloo"):
        raise UnsupportedProblem(
            "engine=pipelining sends from card to card, which gloo does not", "engine=own copies through the host"
        )
    job = Job(
        planned=planned,
        options=options,
        device=device,
        backend=backend,
        end_s=limit_s - END_S if limit_s > 2 * END_S else limit_s,
        data_bytes=memory_limits(problem, options, layout, node) if device == "cpu" else (),
        verify=_needs_reference(problem, options),
        chain=chain,
        captured=captured,
        seed=context.seed,
        cores=cores_for(node.processes[node.rank], options.threads) if device == "cpu" else (),
    )
    with scratch_folder() as folder:
        write(folder / JOB, job)
        command = [sys.executable, "-P", "-m", "pipebench_torch.running.worker", str(folder)]
        run_ranks(command, layout.world, folder, deadline_s, node, _facts(job))
        reports = [read_report(folder, rank, ProcessReport) for rank in range(layout.world)]
    judge_gradients(reports[0].difference, options.tolerance, context)
    if reports[0].delay > 1:
        context.note(f"{reports[0].delay + 1} versions of the weights were held; the cost model counts 2")
    note_other_device(problem, layout, device, reports[0].device, context)
    if chain:
        context.note("run by torch.distributed.pipelining, which tells nothing of single messages")
    apart_ns = max(report.clock_error_ns for report in reports)
    if apart_ns:
        context.note(f"{node.count} nodes; their clocks are aligned to {apart_ns / 1e6:.2g} ms")
    return trace_of(problem, plan, schedule, layout, reports)


def _facts(job: Job) -> dict[str, str]:
    """What all nodes must agree on, in words that name a difference."""
    own = {"node_rank", "timeout_s"}
    options = {name: str(value) for name, value in msgspec.to_builtins(job.options).items() if name not in own}
    return {
        "plan": hashlib.sha256(msgspec.msgpack.encode(job.planned)).hexdigest()[:12],
        **{f"option {name}": value for name, value in options.items()},
        "device": f"{job.device} over {job.backend}",
        "version of torch": version("torch"),
    }


def refuse_sharded(problem: Problem, plan: Plan) -> None:
    """Raises UnsupportedProblem for stages whose operators are split over devices, or recomputed in part, and for
    experts and sequences that ranks share out.
    """
    if problem.regime.expert_ranks > 1:
        raise UnsupportedProblem(
            f"{problem.regime.expert_ranks} ranks share out experts: torch runs each operator whole"
        )
    if problem.regime.context_ranks > 1:
        raise UnsupportedProblem(
            f"{problem.regime.context_ranks} ranks share out sequences: torch runs each operator whole"
        )
    for position, stage in enumerate(plan.stages):
        if stage.tensor_parallel > 1:
            raise UnsupportedProblem(
                f"stage {position} is tensor-parallel ({stage.tensor_parallel}): torch does not split operators"
            )
        if any(parts > 1 for split in stage.sharding for parts in split.values()):
            raise UnsupportedProblem(f"stage {position} shards its operators: torch does not split operators")
        costs = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
        for name, choice in zip(stage.operators, stage.choice, strict=False):
            if not choice:
                continue
            way = _costs_of(problem, costs, name).alternative(choice)
            if way.tensor_parallel > 1:
                raise UnsupportedProblem(f"operator {name!r} runs as {choice!r}: torch does not split operators")
            if way.selective:
                raise UnsupportedProblem(
                    f"operator {name!r} runs as {choice!r}: torch runs whole operators again, not a part of one"
                )


def _costs_of(problem: Problem, costs: tuple[OperatorCosts, ...], name: str) -> OperatorCosts:
    return costs[problem.profile.graph.index[name]]


def _needs_reference(problem: Problem, options: ExecutorOptions) -> bool:
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
    wider = FLOAT64_BYTES / ELEMENT_BYTES[problem.regime.precision]
    return wider * held <= MOST_VERIFIED_BYTES and wider * seconds <= MOST_VERIFIED_S
