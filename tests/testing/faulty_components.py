"""Executors, schedulers, profilers, models and formats with one fault each."""

from pathlib import Path

from tests.hooks.distributions import install

SOURCE = """
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import (
    Artefact, Executor, ExecutorCapabilities, Format, Model, Profiler, ScheduleCapabilities, Scheduler,
)

PIPEBENCH_API = 1
PIPEBENCH_SAMPLES = {"format-sample": "tests.testing:conftest.py"}

def named(kind, fault, **more):
    load = "{module}_work:" + f"{kind.__name__.lower()}_{fault}".replace("-", "_")
    return kind(name=f"{kind.__name__.lower()}-{fault}", summary="for tests", load=load, **more)

@hookimpl
def pipebench_executors():
    for fault in ("honest", "tasks", "clocks", "cancel", "runs", "refusing", "total", "columns"):
        yield named(Executor, fault)
    yield named(Executor, "order", capabilities=ExecutorCapabilities(shared_devices=False))
    few = ExecutorCapabilities(schedules=("finite",), launch="processes", placements=("apart",))
    yield named(Executor, "dead-worker", capabilities=few)
    yield named(Executor, "no-worker", capabilities=few)
    yield named(Executor, "watchful", capabilities=few)

@hookimpl
def pipebench_schedulers():
    for fault in ("honest", "validity", "crash", "silence", "state", "calls"):
        yield named(Scheduler, fault)
    yield named(Scheduler, "capabilities", capabilities=ScheduleCapabilities(placements=("apart", "listed")))
    yield named(Scheduler, "determinism")

@hookimpl
def pipebench_profilers():
    for fault in ("profile", "unknown-kind", "determinism"):
        yield named(Profiler, fault)

@hookimpl
def pipebench_models():
    for fault in ("graph", "determinism", "pieces"):
        yield named(Model, fault)

@hookimpl
def pipebench_formats():
    for fault in ("suffixes", "garbage", "accepts", "sample"):
        yield named(Format, fault, suffixes=("." + fault,) if fault != "suffixes" else ("csv",))

@hookimpl
def pipebench_artefacts():
    return [named(Artefact, fault, paper="A paper") for fault in ("judge", "cells", "determinism")]
"""

WORK = '''
import multiprocessing
import random
import time

import msgspec

from msgspec.structs import replace

from pipebench.artefacts.findings import claim_only
from pipebench.domain.artefact import Cell, Claim, Figure
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.simulation.simulate import simulate

def executor_honest(problem, plan, schedule, context):
    return simulate(problem, plan, schedule)

def executor_runs(problem, plan, schedule, context):
    if plan.placement != "apart":
        raise UnsupportedProblem("stages share devices")
    return simulate(problem, plan, schedule)

def executor_refusing(problem, plan, schedule, context):
    raise PipebenchError("there is no such device here")

def executor_tasks(problem, plan, schedule, context):
    trace = simulate(problem, plan, schedule)
    columns = ("lane", "stage", "micro_batch", "kinds", "start_ns", "end_ns")
    return replace(trace, **{name: getattr(trace, name)[:-1] for name in columns})

def executor_order(problem, plan, schedule, context):
    """The last stage starts at once, as if it needed nobody."""
    trace = simulate(problem, plan, schedule)
    last = len(plan.stages) - 1
    early = min(start for start, stage in zip(trace.start_ns, trace.stage) if stage == last)
    def moved(times):
        return tuple(time - early * (stage == last) for time, stage in zip(times, trace.stage))
    return replace(trace, start_ns=moved(trace.start_ns), end_ns=moved(trace.end_ns))

def executor_clocks(problem, plan, schedule, context):
    trace = simulate(problem, plan, schedule)
    return replace(trace, end_ns=(trace.start_ns[0] - 1, *trace.end_ns[1:]), origin="measured")

def executor_total(problem, plan, schedule, context):
    return replace(simulate(problem, plan, schedule), total_ns=0)

def executor_columns(problem, plan, schedule, context):
    trace = simulate(problem, plan, schedule)
    return replace(trace, end_ns=trace.end_ns[:-1])

def executor_cancel(problem, plan, schedule, context):
    trace = simulate(problem, plan, schedule)
    if trace.total_ns > 10**10:
        time.sleep(6)
    return trace

def _wait(queue, seconds):
    time.sleep(seconds)
    queue.put(1)

def executor_dead_worker(problem, plan, schedule, context):
    """Waits for its worker's word and never looks whether the worker lives."""
    trace = simulate(problem, plan, schedule)
    forked = multiprocessing.get_context("fork")
    queue = forked.Queue()
    worker = forked.Process(target=_wait, args=(queue, min(30.0, trace.total_ns / 1e9)))
    worker.start()
    while queue.empty():
        time.sleep(0.01)
        if context.out_of_time():
            worker.kill()
            worker.join()
            context.check_deadline()
    worker.join()
    return trace

def executor_watchful(problem, plan, schedule, context):
    """As it should be: looks at its worker and at the clock."""
    trace = simulate(problem, plan, schedule)
    forked = multiprocessing.get_context("fork")
    queue = forked.Queue()
    worker = forked.Process(target=_wait, args=(queue, min(30.0, trace.total_ns / 1e9)))
    worker.start()
    while queue.empty():
        time.sleep(0.01)
        if context.out_of_time():
            worker.kill()
            worker.join()
            context.check_deadline()
        if not worker.is_alive() and queue.empty():
            raise PipebenchError(f"the worker ended with exit code {worker.exitcode}")
    worker.join()
    return trace

executor_no_worker = executor_honest

def scheduler_honest(problem, plan, context):
    if plan.placement != "apart":
        raise UnsupportedProblem("stages share devices")
    counts = [problem.mini_batch // stage.micro_batch for stage in plan.stages]
    def lane(position, stage):
        order = list(range(counts[position])) * 2
        kinds = "F" * counts[position] + "B" * counts[position]
        reduce = stage.data_parallel > 1
        return Lane(
            devices=stage.devices,
            stage=(position,) * (len(order) + reduce),
            micro_batch=(*order, *([0] if reduce else [])),
            kinds=kinds + "R" * reduce,
        )
    if len({stage.micro_batch for stage in plan.stages}) > 1:
        raise UnsupportedProblem("micro-batches of several sizes")
    return FiniteSchedule(lanes=tuple(lane(*each) for each in enumerate(plan.stages)))

scheduler_capabilities = scheduler_honest

def scheduler_silence(problem, plan, context):
    print("ordering")
    return scheduler_honest(problem, plan, context)

SEEN = []

def scheduler_state(problem, plan, context):
    SEEN.append(1)
    made = scheduler_honest(problem, plan, context)
    return FiniteSchedule(lanes=()) if len(SEEN) > 5 else made

def scheduler_calls(problem, plan, context):
    return context.schedule("scheduler-honest", problem, plan)

def scheduler_validity(problem, plan, context):
    made = scheduler_honest(problem, plan, context)
    lanes = [replace(lane, kinds=lane.kinds[::-1] if "R" not in lane.kinds else lane.kinds) for lane in made.lanes]
    return FiniteSchedule(lanes=tuple(lanes))

def scheduler_crash(problem, plan, context):
    return scheduler_honest(problem, plan, context).lanes[7]

def scheduler_determinism(problem, plan, context):
    made = scheduler_honest(problem, plan, context)
    def shuffled(lane):
        forwards = lane.kinds.count("F")
        order = random.sample(range(forwards), forwards)
        return replace(lane, micro_batch=(*order, *lane.micro_batch[forwards:]))
    return FiniteSchedule(lanes=tuple(shuffled(lane) for lane in made.lanes))

def measured(graph, context, devices=None, seconds=1e-3):
    sizes = context.request.micro_batches
    return Profile(
        name=graph.name,
        graph=graph,
        costs=tuple(
            DeviceCosts(
                device_type=device.name,
                micro_batches=sizes,
                operators=tuple(
                    OperatorCosts(
                        operator=op.name,
                        forward_s=tuple(seconds * size for size in sizes),
                        backward_s=tuple(seconds * size for size in sizes),
                    )
                    for op in graph.operators
                ),
            )
            for device in (devices or context.request.devices)
        ),
        provenance=Provenance(profiler="measured"),
    )

def profiler_profile(graph, context):
    return measured(graph, context, context.request.devices[:1])

def profiler_unknown_kind(graph, context):
    times = {"linear": 1, "relu": 1}
    [times[operator.kind] for operator in graph.operators]
    return measured(graph, context)

def profiler_determinism(graph, context):
    return measured(graph, context, seconds=random.random())

def model_pieces(context):
    from pipebench.testing.sources import layers
    one, other = layers(), layers()
    renamed = {operator.name: f"{operator.name}-too" for operator in other.operators} | {"input": "input-too"}
    def again(name):
        return renamed.get(name, name)
    more = tuple(
        msgspec.structs.replace(
            operator, name=again(operator.name), inputs=tuple(map(again, operator.inputs)), parameters=(), axes={}
        )
        for operator in other.operators
    )
    tensors = tuple(
        msgspec.structs.replace(each, name=again(each.name), producer=each.producer and again(each.producer))
        for each in other.tensors
    )
    return msgspec.structs.replace(one, operators=one.operators + more, tensors=one.tensors + tensors)

def model_graph(context):
    return OperatorGraph(name="m", operators=(Operator(name="a", kind="x"), Operator(name="b", kind="x")))

def model_determinism(context):
    return OperatorGraph(name=f"m{random.random()}", operators=(Operator(name="a", kind="x"),))

def format_suffixes(data, context):
    raise PipebenchError(f"{context.request}: no such file")

format_sample = format_suffixes

def format_garbage(data, context):
    data.decode("ascii")
    raise PipebenchError(f"{context.request}: no such file")

def format_accepts(data, context):
    graph = OperatorGraph(name="m", operators=(Operator(name="a", kind="x"),))
    costs = OperatorCosts(operator="a", forward_s=(1.0,), backward_s=(1.0,))
    return Profile(
        name="p", graph=graph, costs=(DeviceCosts(device_type="d", micro_batches=(1,), operators=(costs,)),)
    )

class Fine:
    claims = (Claim(name="fine", statement="all is well", where="section 1"),)
    planner, mini_batch = "uniform", 8
    def suite(self, full, profiles=()):
        what = {"planner": self.planner, "profile": "resnet50", "devices": 2, "mini_batch": self.mini_batch}
        return (Cell(at={"series": "one"}, **what),)
    def judge(self, results):
        return [claim_only(claim) for claim in self.claims]
    def series(self, results):
        return Figure(title="none")

class artefact_cells(Fine):
    planner = "unifrom"

class artefact_determinism(Fine):
    def __init__(self):
        self.mini_batch = random.randint(1, 10**9)

class artefact_judge:
    claims = ()
    def suite(self, full, profiles=()):
        return ()
    def judge(self, results):
        return []
    def series(self, results):
        return None
'''


def install_faulty_components(folder: Path) -> None:
    """Put the distribution into a folder for sys.path."""
    install(folder, "faulty-components", SOURCE)
    (folder / "faulty_components_work.py").write_text(WORK)
