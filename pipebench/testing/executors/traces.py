"""Runs of an executor, and the suite's verdict on their traces."""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from msgspec.structs import replace

from pipebench.bench.services import HostServices
from pipebench.check import check_trace
from pipebench.defaults import KIT_SCHEDULERS
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.verdict import Verdict, Witness
from pipebench.hooks.descriptors import Executor, ExecutorCapabilities
from pipebench.hooks.manager import Host
from pipebench.hooks.placements import placements_of, takes
from pipebench.testing.asked import Asked, broken
from pipebench.testing.calls import Answer, Call
from pipebench.testing.executors.computable import computable
from pipebench.testing.plans import CASES, SHARED, Planned, case, in_order, in_pairs, slow
from pipebench.testing.subject import Subject
from pipebench.testing.verdicts import Failed, Waived, first_failure

ORDER = ("C4", "dependency")
CLOCKS = ("coverage", "shape", "resource", "memory", "C1", "C2", "C3")
CLOCKS_NS = 100_000
"""How far the clocks of real devices may disagree."""


class Runs:
    """Every plan that the executor says it can run, under each kind of schedule that it says it can follow."""

    def __init__(self, host: Host, subject: Subject) -> None:
        assert isinstance(subject.component, Executor)
        self.subject, self.capabilities = subject, subject.component.capabilities
        self.services = HostServices(host)
        self.planned: dict[str, tuple[Planned, Schedule]] = {}

    @cached_property
    def asked(self) -> Asked:
        """The runs; schedules are made by the host's schedulers when the first is looked at, those of several
        stages on a device set by the kit itself.
        """
        for kind in self.capabilities.schedules:
            for name, (planned, schedule) in self._scheduled(kind):
                self.planned[f"{name} ({kind})"] = planned, schedule
        calls = [self.call(name, *each) for name, each in self.planned.items()]
        return Asked(calls, lambda call, name: replace(call, name=name))

    def _scheduled(self, kind: Literal["finite", "periodic"]) -> Iterator[tuple[str, tuple[Planned, Schedule]]]:
        mode, plain, general = KIT_SCHEDULERS[kind]
        placements = placements_of(self.capabilities)
        for name in CASES:
            planned = _computable(case(name, mode))
            if self._declared(planned) and (name, kind) != ("mixed-sizes", "periodic"):
                scheduler = general if planned.needs == "stage_graphs" and kind == "periodic" else plain
                yield name, (planned, self.services.schedule(scheduler, planned.problem, planned.plan))
        listed = ("shared", "wave") if "listed" in placements else ()
        shared = dict.fromkeys((*listed, *(name for each in placements for name in SHARED.get(each, ()))))
        for name in shared:
            planned = _computable(case(name, mode))
            if not self._declared(planned):
                continue
            if kind == "finite":
                yield name, (planned, in_order(planned.problem, planned.plan))
            elif name == "shared":
                yield name, (planned, self.services.schedule(general, planned.problem, planned.plan))
        if kind == "finite" and self.capabilities.pairs:
            planned = _computable(case("chain", mode))
            half = dataclasses.replace(planned, problem=replace(planned.problem, overlap=0.5))
            yield "pairs", (half, in_pairs(half.problem, half.plan))

    def _declared(self, planned: Planned) -> bool:
        declared: ExecutorCapabilities = self.capabilities
        if not takes(placements_of(declared), planned.plan):
            return False
        match planned.needs:
            case "stage_graphs":
                return declared.stage_graphs == "dag"
            case "replicas":
                return declared.replicas
        return True

    def call(self, name: str, planned: Planned, schedule: Schedule) -> Call:
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
        for name, answer in self.asked.first.items():
            if name in self.planned and answer.trace is not None:
                verdict = self._verdict(name, answer)
                if verdict.witness is not None:
                    found[name] = verdict.witness
        return found

    def _verdict(self, name: str, answer: Answer) -> Verdict:
        planned, schedule = self.planned[name]
        assert answer.trace is not None
        tolerance = 0 if answer.trace.origin == "simulated" else CLOCKS_NS
        return check_trace(planned.problem, planned.plan, schedule, answer.trace, tolerance_ns=tolerance)

    @cached_property
    def miscounted(self) -> dict[str, str]:
        """Runs whose trace lacks or repeats a task, with the first such task."""
        found = {}
        for name, answer in self.asked.first.items():
            if name in self.planned and answer.trace is not None:
                flaw = task_flaw(answer.trace, self.planned[name][1])
                if flaw is not None:
                    found[name] = flaw
        return found

    def need_traces(self) -> None:
        """Raise Waived when no run left a trace: there is nothing to look at."""
        if all(answer.trace is None for answer in self.asked.first.values()):
            raise Waived("no run left a trace")

    def of_rules(self, rules: tuple[str, ...]) -> None:
        """Raise Failed for the first trace that breaks one of the rules, of those with the right tasks."""
        self.need_traces()
        first_failure(
            f"{name}: {witness.rule}: {witness.message}"
            for name, witness in self.witnesses.items()
            if witness.rule in rules and name not in self.miscounted
        )


def _computable(planned: Planned) -> Planned:
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


def counted(runs: Runs) -> None:
    """Every scheduled task ran exactly once."""
    runs.need_traces()
    first_failure(f"{name}: {flaw}" for name, flaw in runs.miscounted.items())


def ran(runs: Runs) -> None:
    """What it declares it runs: a trace, or an error that says what it needs."""
    answers = runs.asked.first.values()
    first_failure(map(broken, answers))
    refused = [answer for answer in answers if answer.ending != "returned"]
    unsupported = [f"{a.name}: declared, and refused: {a.reason}" for a in refused if a.ending == "unsupported"]
    if unsupported:
        raise Failed(unsupported[0])
    if len(refused) == len(answers):
        raise Waived(f"it runs nothing here: {refused[0].reason}")


def order(runs: Runs) -> None:
    """No task starts before those that it needs have ended."""
    runs.of_rules(ORDER)


def clocks(runs: Runs) -> None:
    """Tasks end after they start, one at a time on a device; simulated ones last as long as the costs say."""
    runs.of_rules(CLOCKS)
