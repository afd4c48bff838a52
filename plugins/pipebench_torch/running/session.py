"""What a process does between meeting the others and its report."""

from math import ceil

from pipebench.domain.graph import OperatorGraph
from pipebench_torch.machine import Machine, full_precision, keep_freed_memory, machine_of
from pipebench_torch.modules.models import StageableModel
from pipebench_torch.modules.profile_models import for_checking, model_of
from pipebench_torch.placing.layout import Layout
from pipebench_torch.placing.messages import traffic_of
from pipebench_torch.placing.orders import Task, lane_orders, rounds_of
from pipebench_torch.processes.cores import start_ordinary_threads
from pipebench_torch.processes.job import Difference, Job, ProcessReport, Status, TaskTimes
from pipebench_torch.running.clocks import Clocks, by_rank_0
from pipebench_torch.running.exchange import broadcast_value, channel_groups, replica_groups
from pipebench_torch.running.runner import Record, Runner
from pipebench_torch.running.stage import StageRun
from pipebench_torch.running.verification import compare_gradients

MOST_RUNS = 100
"""Mini-batches that are measured to fill `least_s`."""


def run_session(job: Job, rank: int, local: int, status: Status) -> ProcessReport:
    """Build, verify, measure. Raises UnsupportedProblem for an operator that cannot be built."""
    status.say("building the model")
    machine = machine_of(job.device, job.backend, local)
    model = model_of(job.planned.problem, job.seed, machine.device, job.captured)
    status.say("comparing clocks with rank 0")
    session = Session(job, model.graph, rank, machine, status, Clocks(job.backend))
    difference = session.check_gradients(model) if job.verify else None
    runner, layout = session.runner(model), session.layout
    runner.run()
    held = runner.held_bytes()
    base = machine.settled_bytes() - held  # what was loaded with the first run is not the plan's
    watched = runner.run(watch_memory=True)
    if job.device == "cpu":
        keep_freed_memory()
    runs, clock_error_ns = session.measure(runner)
    return ProcessReport(
        rank=rank,
        runs=runs,
        memory=tuple((max(0, during - base), max(0, after - base)) for during, after in watched.memory),
        held_bytes=held,
        delay=session.delay,
        rounds=layout.rounds,
        clock_error_ns=clock_error_ns,
        difference=difference,
        device=machine.name(),
    )


class Session:
    """What a process knows of the whole run."""

    def __init__(
        self, job: Job, graph: OperatorGraph, rank: int, machine: Machine, status: Status, clocks: Clocks
    ) -> None:
        self.job, self.rank, self.machine, self.status = job, rank, machine, status
        self.clocks, self.offset_ns = clocks, clocks.compare().offset_ns
        problem, plan, schedule = job.planned.problem, job.planned.plan, job.planned.schedule
        assert schedule is not None
        self.layout, self.delay = rounds_of(problem, plan, schedule, job.options)
        orders = lane_orders(problem, plan, schedule, self.layout)
        self.order_of = {each: _tasks_of(self.layout, orders, each) for each in range(self.layout.world)}
        self.traffic = traffic_of(graph, self.layout)
        self.replicas = replica_groups(self.layout, rank, machine)
        self.channels = (
            channel_groups(self.traffic, rank, machine) if job.backend == "nccl" and not job.chain else {}
        )

    def runner(self, model: StageableModel) -> Runner:
        """This process's part of the run, with the weights of a model."""
        job, layout = self.job, self.layout
        plan = job.planned.plan
        stages = {
            position: StageRun(model, job.planned.problem, plan, position, self.traffic)
            for position in layout.stages_of(self.rank)
        }
        own = self.order_of[self.rank]
        runner = _kind(job)(model, layout, stages, own, self.traffic, self.rank, self.machine, self.status)
        runner.delay, runner.ahead, runner.chain = self.delay, job.options.ahead, job.chain
        runner.offset_ns = self.offset_ns
        runner.replicas, runner.channels = self.replicas, self.channels
        runner.prepare(self.order_of)
        return runner

    def measure(self, runner: Runner) -> tuple[tuple[TaskTimes, ...], int]:
        """Measure the mini-batches that count. Returns their times by the clock of rank 0, and the error of that
        clock in ns.
        """
        before = self.clocks.compare()
        runner.offset_ns = before.offset_ns
        start_ordinary_threads()  # those of the process groups are there
        runs = self._counted_runs(runner)
        after = self.clocks.compare()
        return tuple(by_rank_0(run, before, after) for run in runs), max(before.error_ns, after.error_ns)

    def _counted_runs(self, runner: Runner) -> tuple[TaskTimes, ...]:
        """The runs that count: one flush each, or one run of many mini-batches."""
        if self.layout.rounds > 1:
            return (self._time_run(runner),)
        options = self.job.options
        for _ in range(options.warmup):
            runner.run()
        first = self._time_run(runner)
        enough = min(MOST_RUNS, ceil(options.least_s * 1e9 / max(1, first.ended - first.begun)))
        wanted = broadcast_value(max(options.iterations, enough), self.machine)
        return (first, *(self._time_run(runner) for _ in range(wanted - 1)))

    def _time_run(self, runner: Runner) -> TaskTimes:
        return _task_times(self.machine, runner.run())

    def check_gradients(self, model: StageableModel) -> Difference | None:
        """Compare gradients in float64 with those of a single process. Rank 0 returns the difference."""
        job = self.job
        with full_precision():
            runner = self.runner(for_checking(model))
            runner.run()
            waiting = (
                "comparing gradients with a single process" if self.rank == 0 else "waiting for rank 0 to compare"
            )
            self.status.say(waiting)
            alone = (
                model if job.device == "cpu" else model_of(job.planned.problem, job.seed, captured=job.captured)
            )
            mini_batch = job.planned.problem.mini_batch
            return compare_gradients(for_checking(alone), runner, mini_batch)


def _kind(job: Job) -> type[Runner]:
    """The class that runs the tasks. torch.distributed.pipelining takes as long to import as torch itself."""
    if not job.chain:
        return Runner
    from pipebench_torch.running.pipelining import ChainRunner

    return ChainRunner


def _tasks_of(layout: Layout, orders: dict[frozenset[int], list[Task]], rank: int) -> list[Task]:
    device = layout.device_of(rank)
    return next((tasks for devices, tasks in orders.items() if device in devices), [])


def _task_times(machine: Machine, record: Record) -> TaskTimes:
    """The marks of a run as instants of this process's clock."""
    begins = machine.read([begin for _, begin, _ in record.tasks])
    ends = machine.read([end for _, _, end in record.tasks])
    begun, ended = machine.read([record.begun, record.ended])
    sent = machine.read([mark for _, mark in record.sent])
    got = machine.read([mark for _, mark in record.got])
    return TaskTimes(
        begun=begun,
        ended=ended,
        begin=tuple(begins),
        end=tuple(ends),
        sent=dict(zip((tag for tag, _ in record.sent), sent, strict=True)),
        got=dict(zip((tag for tag, _ in record.got), got, strict=True)),
    )
