"""Checks of executors: what ran, in which order, by which clock; and an end whatever happens."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Literal

from msgspec.structs import replace

from pipebench.bench.services import HostServices
from pipebench.check import check_run, check_trace
from pipebench.defaults import KIT_SCHEDULERS
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.verdict import Verdict, Witness
from pipebench.hooks.descriptors import Executor, ExecutorCapabilities
from pipebench.hooks.manager import Host
from pipebench.hooks.placements import placements_of, takes
from pipebench.testing.calls import Answer, Call
from pipebench.testing.descriptions import tried_options
from pipebench.testing.plan_cases import PLAN_CASES, SHARED, PlanCase, in_order, in_pairs, plan_case, slow
from pipebench.testing.sessions import (
    BROKEN,
    RepeatedCalls,
    breakdown,
    called_as_declared,
    left_nothing,
    printed_nothing,
)
from pipebench.testing.targets import CheckTarget
from pipebench.testing.verdicts import Failed, Waived, first_failure

FEATURES = 16
INPUT = "x"
OUT, IN = "out_features", "in_features"
BYTES = 4.0 * FEATURES


def computable(problem: Problem) -> Problem:
    """The same operators, edges and times, as layers of 16 features: `linear`, `add` where tensors meet."""
    graph = problem.profile.graph
    producer = {tensor.name: tensor.producer for tensor in graph.tensors}
    operators = [_operator(op.name, [f"{producer[name]}.out" for name in op.inputs]) for op in graph.operators]
    made = [
        Tensor(
            name=f"{op.name}.out",
            producer=op.name,
            forward_bytes_per_sample=BYTES,
            gradient_bytes_per_sample=BYTES,
        )
        for op in operators
    ]
    weights = [Parameter(name=name, bytes=4 * FEATURES**2) for op in operators for name in op.parameters]
    image = OperatorGraph(
        name=graph.name,
        operators=tuple(operators),
        tensors=(Tensor(name=INPUT, forward_bytes_per_sample=BYTES, gradient_bytes_per_sample=0.0), *made),
        parameters=tuple(weights),
    )
    return replace(problem, profile=replace(problem.profile, graph=image))


def _operator(name: str, inputs: list[str]) -> Operator:
    written = f"{name}.out"
    if len(inputs) > 1:
        axes: dict[str, tuple[str, ...]] = dict.fromkeys((*inputs, written), ("batch", "features"))
        return Operator(name=name, kind="add", dims={"features": FEATURES}, axes=axes, inputs=tuple(inputs))
    weight = f"{name}.weight"
    (read,) = inputs or [INPUT]
    return Operator(
        name=name,
        kind="linear",
        dims={IN: FEATURES, OUT: FEATURES},
        axes={read: ("batch", IN), weight: (OUT, IN), written: ("batch", OUT)},
        inputs=(read,),
        parameters=(weight,),
    )


ORDER = ("C4", "dependency")
CLOCKS = ("coverage", "shape", "resource", "memory", "C1", "C2", "C3")
CLOCKS_NS = 100_000
"""How far the clocks of real devices may disagree."""


class ExecutorRuns:
    """Every plan that the executor says it can run, under each kind of schedule that it says it can follow."""

    def __init__(self, host: Host, subject: CheckTarget) -> None:
        assert isinstance(subject.component, Executor)
        self.subject, self.capabilities = subject, subject.component.capabilities
        self.services = HostServices(host)
        self.planned: dict[str, tuple[PlanCase, Schedule]] = {}

    @cached_property
    def repeated_calls(self) -> RepeatedCalls:
        """The runs; schedules are made by the host's schedulers when the first is looked at, those of several
        stages on a device set by the kit itself.
        """
        for kind in self.capabilities.schedules:
            for name, (planned, schedule) in self._cases_of_kind(kind):
                self.planned[f"{name} ({kind})"] = planned, schedule
        calls = [self.call(name, *each) for name, each in self.planned.items()]
        return RepeatedCalls(self.subject.calls, calls, lambda call, name: replace(call, name=name))

    def _cases_of_kind(
        self, kind: Literal["finite", "periodic"]
    ) -> Iterator[tuple[str, tuple[PlanCase, Schedule]]]:
        mode, plain, general = KIT_SCHEDULERS[kind]
        placements = placements_of(self.capabilities)
        for name in PLAN_CASES:
            planned = _computable(plan_case(name, mode))
            if self._is_runnable(planned) and (name, kind) != ("mixed-sizes", "periodic"):
                scheduler = general if planned.needs == "stage_graphs" and kind == "periodic" else plain
                yield name, (planned, self.services.schedule(scheduler, planned.problem, planned.plan))
        listed = ("shared", "wave") if "listed" in placements else ()
        shared = dict.fromkeys((*listed, *(name for each in placements for name in SHARED.get(each, ()))))
        for name in shared:
            planned = _computable(plan_case(name, mode))
            if not self._is_runnable(planned):
                continue
            if kind == "finite":
                yield name, (planned, in_order(planned.problem, planned.plan))
            elif name == "shared":
                yield name, (planned, self.services.schedule(general, planned.problem, planned.plan))
        if kind == "finite" and self.capabilities.pairs:
            planned = _computable(plan_case("chain", mode))
            half = dataclasses.replace(planned, problem=replace(planned.problem, overlap=0.5))
            yield "pairs", (half, in_pairs(half.problem, half.plan))

    def _is_runnable(self, planned: PlanCase) -> bool:
        declared: ExecutorCapabilities = self.capabilities
        if not takes(declared, planned.plan):
            return False
        match planned.needs:
            case "stage_graphs":
                return declared.stage_graphs == "dag"
            case "replicas":
                return declared.replicas
        return True

    def call(self, name: str, planned: PlanCase, schedule: Schedule) -> Call:
        """The call that runs a plan."""
        return Call(
            name=name,
            slot="executors",
            component=self.subject.label,
            problem=planned.problem,
            plan=planned.plan,
            schedule=schedule,
        )

    def slow(self) -> Call:
        """A run that would take more than a minute in real time."""
        mode, scheduler, _ = KIT_SCHEDULERS[self.capabilities.schedules[0]]
        planned = _computable(slow(mode))
        return self.call("slow", planned, self.services.schedule(scheduler, planned.problem, planned.plan))

    @cached_property
    def witnesses(self) -> dict[str, Witness]:
        """What the suite's check finds wrong, by the names of the runs."""
        found = {}
        for name, answer in self.repeated_calls.first.items():
            if name in self.planned and answer.trace is not None:
                planned, schedule = self.planned[name]
                witness = self._verdict(name, answer).witness or check_run(
                    planned.problem, planned.plan, schedule, answer.trace
                )
                if witness is not None:
                    found[name] = witness
        return found

    def _verdict(self, name: str, answer: Answer) -> Verdict:
        planned, schedule = self.planned[name]
        assert answer.trace is not None
        tolerance = 0 if answer.trace.origin == "simulated" else CLOCKS_NS
        return check_trace(planned.problem, planned.plan, schedule, answer.trace, tolerance_ns=tolerance)

    @cached_property
    def wrong_task_counts(self) -> dict[str, str]:
        """Runs whose trace lacks or repeats a task, with the first such task."""
        found = {}
        for name, answer in self.repeated_calls.first.items():
            if name in self.planned and answer.trace is not None:
                flaw = task_flaw(answer.trace, self.planned[name][1])
                if flaw is not None:
                    found[name] = flaw
        return found

    def need_traces(self) -> None:
        """Raise Waived when no run left a trace: there is nothing to look at."""
        if all(answer.trace is None for answer in self.repeated_calls.first.values()):
            raise Waived("no run left a trace")

    def of_rules(self, rules: tuple[str, ...]) -> None:
        """Raise Failed for the first trace that breaks one of the rules, of those with the right tasks."""
        self.need_traces()
        first_failure(
            f"{name}: {witness.rule}: {witness.message}"
            for name, witness in self.witnesses.items()
            if witness.rule in rules and name not in self.wrong_task_counts
        )


def _computable(planned: PlanCase) -> PlanCase:
    return dataclasses.replace(planned, problem=computable(planned.problem))


def task_flaw(trace: Trace, schedule: Schedule) -> str | None:
    """The first task that did not run exactly once; periodic: F and B of the same micro-batches in every stage."""
    ran = Counter(zip(trace.stage, trace.micro_batch, trace.kinds, strict=True))
    if isinstance(schedule, PeriodicSchedule):
        last = max(trace.micro_batch, default=-1)
        pairs = zip(schedule.stage, schedule.kinds, strict=True)
        wanted = Counter((stage, batch, kind) for stage, kind in pairs for batch in range(last + 1))
    else:
        columns = (zip(lane.stage, lane.micro_batch, lane.kinds, strict=True) for lane in schedule.lanes)
        wanted = Counter(task for lane in columns for task in lane)
    wrong = sorted(task for task in ran | wanted if ran[task] != wanted[task])
    if not wrong:
        return None
    stage, batch, kind = wrong[0]
    return f"{kind} of stage {stage}, micro-batch {batch} ran {ran[wrong[0]]} times, not {wanted[wrong[0]]}"


def check_task_counts(runs: ExecutorRuns) -> None:
    """Every scheduled task ran exactly once."""
    runs.need_traces()
    first_failure(f"{name}: {flaw}" for name, flaw in runs.wrong_task_counts.items())


def ran(runs: ExecutorRuns) -> None:
    """What it declares it runs: a trace, or an error that says what it needs."""
    answers = runs.repeated_calls.first.values()
    first_failure(map(breakdown, answers))
    refused = [answer for answer in answers if answer.ending != "returned"]
    unsupported = [f"{a.name}: declared, and refused: {a.reason}" for a in refused if a.ending == "unsupported"]
    if unsupported:
        raise Failed(unsupported[0])
    if len(refused) == len(answers):
        raise Waived(f"it runs nothing here: {refused[0].reason}")


def order(runs: ExecutorRuns) -> None:
    """No task starts before those that it needs have ended."""
    runs.of_rules(ORDER)


def clocks(runs: ExecutorRuns) -> None:
    """Tasks end after they start, one at a time on a device; simulated ones last as long as the costs say."""
    runs.of_rules(CLOCKS)


SHORT_S, LATE_S = 0.3, 8.0
START_S = 3.0
ATTEMPTS = 3
"""What starting workers may take, besides the grace."""


def cancel(runs: ExecutorRuns) -> None:
    """A run that would take a minute ends soon after a limit of 0.3 s, and leaves no worker behind.

    One that is late is made again: the machine may have been busy.
    """
    starting = START_S if runs.capabilities.launch == "processes" else 0.0
    for left in reversed(range(ATTEMPTS)):
        answer = _warm_answer(runs, replace(runs.slow(), name="cancelled", limit_s=SHORT_S, most_s=LATE_S))
        if answer.ending == "hung":
            raise Failed(f"still running {LATE_S:g} s after a limit of {SHORT_S:g} s; ask context.out_of_time()")
        if answer.ending in BROKEN:
            raise Failed(f"{answer.ending} at its limit: {answer.reason}; raise DeadlineReached")
        if answer.late_s(SHORT_S + starting) == 0:
            break
        if not left:
            raise Failed(f"ended {answer.wall_s:.1f} s after it began, the limit was {SHORT_S:g} s")
    left_nothing([answer])


def _warm_answer(runs: ExecutorRuns, call: Call) -> Answer:
    """A run with a limit, after one without in the same process: imports are nobody's delay."""
    assert runs.repeated_calls
    warm = runs.call("warm", *next(iter(runs.planned.values())))
    return runs.subject.calls.more([warm, call])[call.name]


def dead_worker(runs: ExecutorRuns) -> None:
    """One of its processes is killed: an error that says so, in seconds."""
    if runs.capabilities.launch != "processes":
        raise Waived("it runs in process, there is no worker to lose")
    if sys.platform != "linux":
        raise Waived("only Linux says which processes are whose")
    call = replace(runs.slow(), name="dead worker", kill_worker=True, most_s=LATE_S)
    answer = _warm_answer(runs, call)
    if not answer.workers and answer.ending != "hung":
        raise Failed(f"it declares launch='processes' and started none: {answer.reason or answer.ending}")
    if answer.ending == "hung":
        raise Failed(f"a worker was killed, it still waited {LATE_S:g} s later")
    if answer.ending == "returned":
        raise Failed("a worker was killed, it returned a trace as if nothing had happened")
    if answer.ending in BROKEN:
        raise Failed(f"a worker was killed, it {answer.ending}: {answer.reason}; raise PipebenchError")
    left_nothing([answer])


def executor_checks(host: Host, subject: CheckTarget) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every task once, in order, by clocks that make sense; an end at a deadline and when a worker dies."""
    runs = ExecutorRuns(host, subject)
    yield "runs", partial(ran, runs)
    yield "tasks", partial(check_task_counts, runs)
    yield "order", partial(order, runs)
    yield "clocks", partial(clocks, runs)
    yield "cancel", partial(cancel, runs)
    yield "dead-worker", partial(dead_worker, runs)
    yield "calls", partial(_calls, runs)
    yield "determinism", partial(_determinism, runs)
    yield "silence", partial(_silence, runs)
    yield "state", partial(_state, runs)
    yield "options", partial(tried_options, subject, partial(_chain, runs))


def _chain(runs: ExecutorRuns, label: str) -> Call:
    assert runs.repeated_calls
    name, (planned, schedule) = next(iter(runs.planned.items()))
    call = runs.call(name, planned, schedule)
    return Call(
        name=label,
        slot="executors",
        component=label,
        problem=call.problem,
        plan=call.plan,
        schedule=call.schedule,
    )


def _calls(runs: ExecutorRuns) -> None:
    """It declares what it calls: what it asks its context for is in `calls` of its descriptor."""
    called_as_declared(runs.repeated_calls.first.values())


def _is_measured(runs: ExecutorRuns) -> bool:
    return any(answer.trace and answer.trace.origin == "measured" for answer in runs.repeated_calls.first.values())


def _determinism(runs: ExecutorRuns) -> None:
    """Two processes get the same trace, unless it is measured."""
    if _is_measured(runs):
        raise Waived("its traces are measured: times differ from run to run")
    runs.repeated_calls.determinism()


def _silence(runs: ExecutorRuns) -> None:
    """Nothing reaches standard output."""
    if _is_measured(runs):
        printed_nothing(runs.repeated_calls.first.values())
    else:
        runs.repeated_calls.silence()


def _state(runs: ExecutorRuns) -> None:
    """As everywhere; of measured traces only what is left behind: a second process has nothing to compare."""
    if _is_measured(runs):
        left_nothing(runs.repeated_calls.first.values())
    else:
        runs.repeated_calls.state()
