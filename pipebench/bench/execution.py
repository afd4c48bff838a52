"""One plan, simulated and run by an executor: how far apart the two are."""

import time
from dataclasses import dataclass

from pipebench.bench.machine.environment import disturbance, usage
from pipebench.bench.score import prediction_error
from pipebench.bench.services import HostServices
from pipebench.check import check_run, require_ordered, require_valid_plan
from pipebench.costs.quantise import NS_PER_S
from pipebench.defaults import MEASURING_EXECUTOR, scheduler_for
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError, PluginFailed
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import ALL_REDUCE, TASK_KINDS, Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.manager import Host
from pipebench.simulation.metrics import metrics
from pipebench.simulation.replay import replayed_s


@dataclass(frozen=True, slots=True)
class StageGap:
    """Seconds of tasks of one stage, each kind by its median, as simulated and as measured."""

    stage: int
    simulated_s: float
    measured_s: float


@dataclass(frozen=True, slots=True)
class MemoryGap:
    """The most bytes that one device held, as simulated and as measured."""

    device: int
    simulated_bytes: int
    measured_bytes: int


@dataclass(frozen=True, slots=True)
class Execution:
    """One plan's simulated and measured trace.

    simulated_s, measured_s: of a mini-batch.
    error: (simulated - measured) / measured; None where others disturbed the run.
    replayed_s: simulated with the measured times of tasks; replayed_error: its error, None as above.
    stages: times of each stage.
    all_reduces: of each stage that has one; a replay simulates them.
    memory: of each device whose memory the run measured.
    notices: the executor's, and who disturbed it.
    """

    simulated: Trace
    measured: Trace
    simulated_s: float
    measured_s: float
    error: float | None
    replayed_s: float
    replayed_error: float | None
    stages: tuple[StageGap, ...]
    all_reduces: tuple[StageGap, ...]
    memory: tuple[MemoryGap, ...]
    notices: tuple[str, ...]


def execute_plan(
    host: Host, planned: PlannedProblem, executor: str, timeout_s: float, trusted: frozenset[str] = frozenset()
) -> Execution:
    """Simulate the plan, then run it. Raises PipebenchError for an invalid plan, and where the executor does.

    trusted: import paths out of the plan that the executor may import.
    """
    problem, plan = planned.problem, planned.plan
    services = HostServices(host, deadline_s=time.monotonic() + timeout_s, trusted=trusted)
    scheduler = planned.scheduler or scheduler_for(problem.regime.mode, in_turn=plan.takes_turns)
    require_valid_plan(problem, plan)
    schedule = planned.schedule or services.schedule(scheduler, problem, plan)
    require_ordered(problem, plan, schedule)
    simulated = services.simulate(problem, plan, schedule)
    notices: list[str] = []
    before = usage()
    measured = services.execute(executor, problem, plan, schedule, notices)
    if measured.origin != "measured":
        hint = f"name one that does, such as {MEASURING_EXECUTOR}"
        raise PipebenchError(f"executor {executor!r} measures nothing", hint)
    wrong = check_run(problem, plan, schedule, measured)
    if wrong is not None:
        raise PluginFailed(f"executor {executor!r}: its trace is of no such run: {wrong.message}")
    return gap(planned, schedule, simulated, measured, tuple(notices), tuple(disturbance(before, usage())))


def _require_stages_of(plan: Plan, trace: Trace) -> None:
    strange = next((stage for stage in trace.stage if not 0 <= stage < len(plan.stages)), None)
    if strange is not None:
        raise PipebenchError(
            f"the trace has tasks of stage {strange}, the plan has {len(plan.stages)} stages",
            "give a trace of this plan",
        )


def gap(
    planned: PlannedProblem,
    schedule: Schedule,
    simulated: Trace,
    measured: Trace,
    notices: tuple[str, ...] = (),
    disturbances: tuple[str, ...] = (),
) -> Execution:
    """How far a simulated and a measured trace of one plan are apart. Raises PipebenchError for another plan's.

    disturbances: what disturbed the measured run; then no error is given.
    """
    problem, plan = planned.problem, planned.plan
    for trace in (simulated, measured):
        _require_stages_of(plan, trace)
    both = [metrics(problem, plan, trace).seconds for trace in (simulated, measured)]
    again = replayed_s(problem, plan, schedule, measured)
    times = [stage_seconds(trace, len(plan.stages)) for trace in (simulated, measured)]
    reduces = [stage_seconds(trace, len(plan.stages), ALL_REDUCE) for trace in (simulated, measured)]
    return Execution(
        simulated=simulated,
        measured=measured,
        simulated_s=both[0],
        measured_s=both[1],
        error=None if disturbances else prediction_error(both[0], both[1]),
        replayed_s=again,
        replayed_error=None if disturbances else prediction_error(again, both[1]),
        stages=tuple(StageGap(stage, one, other) for stage, (one, other) in enumerate(zip(*times, strict=True))),
        all_reduces=tuple(
            StageGap(stage, one, other)
            for stage, (one, other) in enumerate(zip(*reduces, strict=True))
            if one or other
        ),
        memory=_memory(simulated, measured),
        notices=(*notices, *disturbances),
    )


def _memory(simulated: Trace, measured: Trace) -> tuple[MemoryGap, ...]:
    planned = {each.device: each.peak_bytes for each in simulated.memory}
    return tuple(
        MemoryGap(each.device, planned[each.device], each.peak_bytes)
        for each in measured.memory
        if each.device in planned and each.peak_bytes
    )


def stage_seconds(trace: Trace, stages: int, kinds: str = TASK_KINDS.replace(ALL_REDUCE, "")) -> list[float]:
    """For each stage the medians of its tasks of each of these kinds, added; 0 where it has none."""
    taken: dict[tuple[int, str], list[int]] = {}
    for stage, kind, start, end in zip(trace.stage, trace.kinds, trace.start_ns, trace.end_ns, strict=True):
        if kind in kinds:
            taken.setdefault((stage, kind), []).append(end - start)
    found = [0.0] * stages
    for (stage, _), times in taken.items():
        found[stage] += sorted(times)[len(times) // 2] / NS_PER_S
    return found
