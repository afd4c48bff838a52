"""What a process does between meeting the others and its report."""

from typing import Any

import torch.distributed as dist

from pipebench_torch.building import model_of
from pipebench_torch.clocks import clock_offset
from pipebench_torch.job import Job, Report, Tasks
from pipebench_torch.layout import Layout
from pipebench_torch.machine import Machine, keep_freed_memory, machine_of
from pipebench_torch.orders import Task, lane_orders
from pipebench_torch.pieces import traffic_of
from pipebench_torch.pipelining import ChainRunner
from pipebench_torch.rounds import rounds_of
from pipebench_torch.runner import Record, Runner
from pipebench_torch.stage import StageRun
from pipebench_torch.status import Status
from pipebench_torch.verify import compare_gradients


def run_session(job: Job, rank: int, local: int, status: Status) -> Report:
    """Build, verify, measure. Raises UnsupportedProblem for an operator that cannot be built."""
    status.say("building the model")
    problem, plan, schedule = job.planned.problem, job.planned.plan, job.planned.schedule
    assert schedule is not None
    layout, delay = rounds_of(problem, plan, schedule, job.options)
    orders = lane_orders(problem, plan, schedule, layout)
    machine = machine_of(job.device, job.backend, local)
    model = model_of(problem, job.seed, machine.device)
    traffic = traffic_of(model.graph, layout)
    stages = {s: StageRun(model, problem, plan, s, traffic) for s in layout.stages_of(rank)}
    order_of = {each: _tasks_of(layout, orders, each) for each in range(layout.world)}
    kind = ChainRunner if job.chain else Runner
    runner = kind(
        model, layout, stages, order_of[rank], traffic, rank, machine, status, delay=delay, ahead=job.options.ahead
    )
    runner.chain = job.chain
    _groups(runner, layout, rank, job.backend)
    runner.prepare(order_of)
    runner.run()
    status.say("comparing clocks with rank 0")
    offset_ns, clock_error_ns = clock_offset(job.backend)
    difference = None
    if job.verify:
        status.say("comparing gradients with a single process" if rank == 0 else "waiting for rank 0 to compare")
        alone = model if job.device == "cpu" else model_of(problem, job.seed)
        difference = compare_gradients(alone, layout, stages, rank, problem.mini_batch, delay, machine)
    held = runner.held_bytes()
    base = machine.settled_bytes() - held  # what was loaded with the first run is not the plan's
    watched = runner.run(watch_memory=True)
    if job.device == "cpu":
        keep_freed_memory()
    wanted = 1 if layout.rounds > 1 else job.options.warmup + job.options.iterations
    records = [runner.run() for _ in range(wanted)]
    if layout.rounds == 1:
        records = records[job.options.warmup :]
    return Report(
        rank=rank,
        runs=tuple(_read(machine, record, offset_ns) for record in records),
        memory=tuple((max(0, during - base), max(0, after - base)) for during, after in watched.memory),
        held_bytes=held,
        delay=delay,
        rounds=layout.rounds,
        clock_error_ns=clock_error_ns,
        difference=difference,
        device=machine.name(),
    )


def _tasks_of(layout: Layout, orders: dict[frozenset[int], list[Task]], rank: int) -> list[Task]:
    device = layout.device_of(rank)
    return next((tasks for devices, tasks in orders.items() if device in devices), [])


def _groups(runner: Runner, layout: Layout, rank: int, backend: str) -> None:
    """Process groups of replicas, and for NCCL one for each channel; every process makes all, in one order."""
    for stage in range(len(layout.plan.stages)):
        ranks = layout.ranks_of(stage)
        if len(ranks) > 1:
            group = dist.new_group(list(ranks))
            if rank in ranks:
                runner.replicas[stage] = group
    if backend == "nccl":
        pairs = sorted({(p.source, p.target) for p in runner.traffic.pieces if not p.local})
        for pair in pairs:
            group = dist.new_group(sorted(pair))
            if rank in pair:
                runner.channels[pair] = group


def _read(machine: Machine, record: Record, offset_ns: int) -> Tasks:
    """The marks of a run as instants of rank 0's clock."""

    def instants(marks: list[Any]) -> list[int]:
        return [instant + offset_ns for instant in machine.read(marks)]

    begins = instants([begin for _, begin, _ in record.tasks])
    ends = instants([end for _, _, end in record.tasks])
    begun, ended = instants([record.begun, record.ended])
    sent = instants([mark for _, mark in record.sent])
    got = instants([mark for _, mark in record.got])
    return Tasks(
        begun=begun,
        ended=ended,
        begin=tuple(begins),
        end=tuple(ends),
        sent=dict(zip((tag for tag, _ in record.sent), sent, strict=True)),
        got=dict(zip((tag for tag, _ in record.got), got, strict=True)),
    )
