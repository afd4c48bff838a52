"""An honest planner, and copies of it with one fault each, named after the check that must find it."""

from pathlib import Path

from tests.hooks.distributions import install

SOURCE = '''
from typing import Literal

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1
FAULTS = (
    "honest", "metadata", "validity", "infeasible", "memory-edge", "pins", "determinism", "counters", "deadline",
    "capabilities", "claims", "optimality", "calls", "silence", "state", "state-left", "state-thread", "crash",
    "slow-deadline",
    "scheduler", "claims-high", "validity-order", "infeasible-always", "deadline-early",
    "deadline-infeasible", "optimality-outside",
    "busy", "clocks", "files", "files-times", "memo", "offload", "offload-daemon", "offload-server",
)

class Options(Value, frozen=True, kw_only=True):
    """way: how."""

    way: Literal["good", "bad"] = "good"

class Unexplained(Value, frozen=True, kw_only=True):
    """What it is, nobody knows."""

    way: int = 0

@hookimpl
def pipebench_planners():
    for fault in FAULTS:
        yield Planner(
            name="faulty-" + fault,
            summary="everything on one device",
            load="{module}_work:" + fault.replace("-", "_"),
            capabilities=Capabilities(
                regimes=("sync",) if "deadline" in fault or fault == "optimality-outside" else ("sync", "async"),
                replicas=fault == "optimality-outside",
            ),
            default_scheduler={"sync": "1f1q" if fault == "scheduler" else "1f1b", "async": "1f1b*"},
            fidelity="paper" if fault == "metadata" else "",
        )
    for name, options in (("options", Options), ("options-unexplained", Unexplained)):
        yield Planner(
            name="faulty-" + name,
            summary="everything on one device",
            load="{module}_work:options",
            options=options,
            capabilities=Capabilities(regimes=("sync", "async")),
        )
'''

WORK = """
import contextlib
import os
import random
import socket
import threading
import time

from msgspec.structs import replace

from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import DeadlineReached

CALLS = []

def honest(problem, context, *, margin=0, sizes=None, pinned=True):
    pins = problem.pins
    for name in ("tensor_parallel", "data_parallel", "pipeline", "virtual_stages"):
        if getattr(pins, name) not in (None, 1):
            raise UnsupportedProblem(f"one device only, {name} is pinned")
    if pins.recompute not in (None, "none"):
        raise UnsupportedProblem("it does not recompute")
    model = CostModel(problem)
    names = tuple(operator.name for operator in problem.profile.graph.operators)
    said = pins.micro_batch or pins.micro_batch_size
    for size in sizes or ([said] if pinned and said else [4, 2, 1]):
        if problem.mini_batch % size:
            continue
        context.check_deadline()
        context.count("plans")
        plan = Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=size),))
        if model.stage_memory(plan, 0, model.messages(plan)).peak(1) <= problem.cluster.memory_bytes + margin:
            period = model.stage_times(plan.stages[0], plan).period
            return PlanResult(plan=plan, claimed_s=period * (problem.mini_batch // size) / 1e9)
    raise InfeasibleProblem("it does not fit on one device")

metadata = scheduler = honest

def options(problem, context):
    if context.options.way == "bad":
        raise ValueError("this way is not written yet")
    return honest(problem, context)

def crash(problem, context):
    raise KeyError("op")

def validity(problem, context):
    result = honest(problem, context)
    if problem.profile.name != "dag":
        return result
    (stage,) = result.plan.stages
    return replace(result, plan=Plan(stages=(replace(stage, operators=stage.operators[:-1]),)))

def validity_order(problem, context):
    # takes the order in which operators are declared for one in which they can run
    result = honest(problem, context)
    if problem.profile.name != "dag":
        return result
    (stage,) = result.plan.stages
    halves = stage.operators[:3], stage.operators[3:]
    stages = tuple(replace(stage, operators=half, devices=(i,)) for i, half in enumerate(halves))
    return replace(result, plan=Plan(stages=stages))

def infeasible_always(problem, context):
    # compares bytes with gigabytes
    raise InfeasibleProblem("it does not fit")

def deadline_early(problem, context):
    # takes the deadline for a time of another clock
    if context.deadline_s is not None and time.time() > context.deadline_s:
        raise DeadlineReached("no time left")
    return honest(problem, context)

def infeasible(problem, context):
    if problem.cluster.memory_bytes < 10_000:
        raise RuntimeError("nothing left")
    return honest(problem, context)

def memory_edge(problem, context):
    return honest(problem, context, margin=1)

def pins(problem, context):
    return honest(problem, context, pinned=False)

def determinism(problem, context):
    size = problem.pins.micro_batch or problem.pins.micro_batch_size or random.choice([1, 2])
    result = honest(problem, context, sizes=[size])
    return replace(result, notices=(str(random.random()),))

def counters(problem, context):
    context.count("states", time.monotonic_ns() % 10**9)
    return honest(problem, context)

def deadline(problem, context):
    result = honest(problem, context)
    if context.deadline_s is not None and context.deadline_s < time.monotonic() + 0.3:
        end = time.process_time() + 1.3
        while time.process_time() < end:
            pass
    return result

def slow_deadline(problem, context):
    while problem.cluster.size == 8 and len(problem.profile.graph.operators) > 10:
        pass
    return honest(problem, context)

def capabilities(problem, context):
    result = honest(problem, context)
    if problem.cluster.size < 2:
        return result
    stage = result.plan.stages[0]
    if stage.micro_batch < 2 or problem.pins.micro_batch_size is not None:
        return result
    plan = Plan(stages=(replace(stage, devices=(0, 1), data_parallel=2),))
    period = CostModel(problem).stage_times(plan.stages[0], plan).period
    return replace(result, plan=plan, claimed_s=period * (problem.mini_batch // stage.micro_batch) / 1e9)

def calls(problem, context):
    result = honest(problem, context)
    context.schedule({"sync": "1f1b", "async": "1f1b*"}[problem.regime.mode], problem, result.plan)
    return result

def claims(problem, context):
    result = honest(problem, context)
    return replace(result, claimed_s=result.claimed_s * 0.9)

def claims_high(problem, context):
    result = honest(problem, context)
    return replace(result, claimed_s=result.claimed_s * 1.1)

def deadline_infeasible(problem, context):
    if context.out_of_time():
        raise InfeasibleProblem("nothing found")
    return honest(problem, context)

def optimality_outside(problem, context):
    result = optimality(problem, context)
    size = result.plan.stages[0].micro_batch
    if size < 4 or problem.cluster.size < 4:
        return result
    plan = Plan(stages=(replace(result.plan.stages[0], devices=(0, 1, 2, 3), data_parallel=4),))
    period = CostModel(problem).stage_times(plan.stages[0], plan).period
    return replace(result, plan=plan, claimed_s=None)

def optimality(problem, context):
    result = honest(problem, context)
    scope = "contiguous, one micro-batch size, 1F1B" + ("*" if problem.regime.mode == "async" else "")
    return replace(result, termination="optimal", bound_scope=scope)

def silence(problem, context):
    print("looking at", problem.profile.name)
    return honest(problem, context)

def state(problem, context):
    CALLS.append(1)
    result = honest(problem, context)
    return replace(result, notices=("seen before",)) if len(CALLS) > 12 else result

def state_left(problem, context):
    os.environ["FAULTY"] = "1"
    return honest(problem, context)

def state_thread(problem, context):
    if all(thread.name != "more" for thread in threading.enumerate()):
        threading.Thread(target=time.sleep, args=(60,), name="more", daemon=True).start()
    return honest(problem, context)

NUMBERS = {}

def number_of(problem):
    number, work_s = 1, 0.2 if len(problem.profile.graph.operators) > 40 else 0.0
    until_s = time.thread_time() + work_s
    while True:
        for _ in range(1000):
            number = number * 5 % 1_000_003
        if time.thread_time() >= until_s:
            return number

def busy(problem, context):
    number_of(problem)
    return honest(problem, context)

def clocks(problem, context):
    time.process_time = lambda: 0.0
    return honest(problem, context)

def memo(problem, context):
    if problem.problem_id not in NUMBERS:
        NUMBERS[problem.problem_id] = number_of(problem)
    return honest(problem, context)

def files(problem, context):
    kept = os.path.join(os.path.dirname(__file__), "faulty-" + problem.problem_id)
    if not os.path.exists(kept):
        number = number_of(problem)
        with contextlib.suppress(OSError), open(kept, "w") as file:
            file.write(str(number))
    return honest(problem, context)

def files_times(problem, context):
    mark = int(problem.problem_id.encode().hex()[-6:], 16)
    if os.stat(__file__).st_mtime != mark:
        number_of(problem)
        if CALLS:
            os.utime(__file__, (mark, mark))
    CALLS.append(1)
    return honest(problem, context)

def offload(problem, context):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, str(number_of(problem)).encode())
        os._exit(0)
    os.close(writing)
    os.read(reading, 64)
    os.close(reading)
    return honest(problem, context)

def offload_daemon(problem, context):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(number_of(problem)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    os.read(reading, 64)
    os.close(reading)
    return honest(problem, context)

def offload_server(problem, context):
    with socket.socket() as asked:
        asked.settimeout(0.1)
        try:
            asked.connect(("127.0.0.1", 9))
        except OSError:
            pass
    return honest(problem, context)
"""


def install_faulty_planners(folder: Path) -> None:
    """Put the distribution into a folder for sys.path."""
    install(folder, "faulty-planners", SOURCE)
    (folder / "faulty_planners_work.py").write_text(WORK)
    install(folder, "faulty-discovery", HEAVY.replace("{extra}", "import numpy"))
    install(folder, "faulty-greeting", HEAVY.replace("{extra}", "print('hello')"))


HEAVY = """
{extra}
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner

PIPEBENCH_API = 1

@hookimpl
def pipebench_planners():
    return [Planner(name="{module}", summary="one device", load="faulty_planners_work:honest")]
"""
