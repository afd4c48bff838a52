"""Schedules of a pipeline of equal stages, to be drawn: no model, no planner, no device needed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipebench.bench.components import ready_scheduler
from pipebench.bench.services import HostServices
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.limits import MOST_DRAWN_PASSES
from pipebench.domain.placement import PlacementKind, pipelines_of_kind, sets_of_stages
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.value import require
from pipebench.hooks.descriptors import ScheduleCapabilities, Scheduler
from pipebench.hooks.manager import Host
from pipebench.hooks.placements import placements_of
from pipebench.report.gantt.gantt import UNITS, Gantt, gantt
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.gantt.text import timeline
from pipebench.report.units import percent
from pipebench.simulation.metrics import metrics
from pipebench.simulation.synthetic import synthetic

UNIT_NS = 1_000_000
"""What stands for one unit of a shape's times in a trace."""
UNIT_S = UNIT_NS / 1e9


@dataclass(frozen=True, slots=True)
class Shape:
    """The pipeline: times are of one micro-batch on one stage, in any one unit.

    weight: the part of the backward that is the weight gradient, for schedulers that take it apart. virtual: the
    parts that a stage is cut into for schedulers whose devices run several in turn; its times are shared out.
    """

    stages: int = 4
    micro_batches: int = 8
    forward: float = 1.0
    backward: float = 2.0
    transfer: float = 0.0
    weight: float = 0.0
    virtual: int = 2

    def __post_init__(self) -> None:
        passes = self.stages * self.micro_batches * self.virtual
        require(
            passes <= MOST_DRAWN_PASSES,
            f"{self.stages} stages in {self.virtual} parts and {self.micro_batches} micro-batches: at most "
            f"{MOST_DRAWN_PASSES} passes are drawn",
        )
        for name in ("forward", "backward", "transfer", "weight"):
            time = getattr(self, name)
            require(0 <= time < math.inf, f"{name} is {time:g}, it must be a time from 0")
        require(
            self.weight <= self.backward,
            f"weight is {self.weight:g}, more than the backward that it is a part of, {self.backward:g}",
        )


@dataclass(frozen=True, slots=True)
class Drawing:
    """One schedule simulated. total: length in the unit of the shape (periodic: of one micro-batch, steady).

    live: for each device the most micro-batches in flight at any instant, one counted for each of the `parts` of
    a stage that has it. shown: the micro-batches that a timeline shows, of a periodic schedule the first of a run
    without end; until_ns: when the last of them is done.
    """

    scheduler: str
    trace: Trace
    total: float
    bubble: float
    live: tuple[int, ...]
    shown: int
    until_ns: int
    parts: int = 1

    def __str__(self) -> str:
        return "\n".join([self.scheduler, *timeline(self.gantt)])

    def _repr_svg_(self) -> str:
        """The timeline, for notebooks."""
        return gantt_svg([self.gantt], self.scheduler)

    def _repr_html_(self) -> str:
        return self._repr_svg_()

    @property
    def summary(self) -> str:
        """Time, bubble and micro-batches in flight in one line."""
        per = " a micro-batch" if self.trace.period_ns is not None else ""
        flight = ",".join(f"{count / self.parts:g}" for count in self.live)
        return (
            f"{self.scheduler}: time {self.total:g} {UNITS}{per}, bubble {percent(self.bubble)}, "
            f"micro-batches in flight {flight}"
        )

    @property
    def gantt(self) -> Gantt:
        """The timeline; memory of such a pipeline is the micro-batches in flight, which the summary tells."""
        return replace(gantt(self.trace, self.summary, self.until_ns), memory=(), unit_ns=UNIT_NS)


class Drawings(list[Drawing]):
    """Several schedules; a notebook shows them one under the other on one scale of time."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def _repr_svg_(self) -> str:
        return gantt_svg([each.gantt for each in self], ", ".join(each.scheduler for each in self))

    def _repr_html_(self) -> str:
        return self._repr_svg_()


@dataclass(frozen=True, slots=True)
class SchedulerRefusal:
    """A scheduler that refuses the shape, and what it says."""

    scheduler: str
    error: UnsupportedProblem

    def __str__(self) -> str:
        return f"{self.scheduler} is not drawn: {self.error}"


def drawings(host: Host, schedulers: Sequence[str], shape: Shape) -> tuple[list[Drawing], list[SchedulerRefusal]]:
    """A drawing for each scheduler that orders the shape, and those that refuse it.

    Raises PipebenchError for an unknown scheduler or a shape without stages, UnsupportedProblem where all refuse.
    """
    made: list[Drawing] = []
    refused: list[SchedulerRefusal] = []
    for name in schedulers:
        try:
            made.append(_drawing(host, name, shape))
        except UnsupportedProblem as error:
            refused.append(SchedulerRefusal(name, error))
    if refused and not made:
        raise refused[0].error
    return made, refused


def _drawing(host: Host, name: str, shape: Shape) -> Drawing:
    component = ready_scheduler(host, name).component
    assert isinstance(component, Scheduler)
    services = HostServices(host)
    problem, plan, schedule = _schedule_shape(services, name, component.capabilities, shape)
    trace = services.simulate(problem, plan, schedule)
    measured = metrics(problem, plan, trace)
    length_ns = trace.period_ns if trace.period_ns is not None else trace.total_ns
    shown = min(shape.micro_batches // plan.pipelines, max(trace.micro_batch) + 1)
    return Drawing(
        scheduler=name,
        trace=trace,
        total=length_ns / UNIT_NS,
        bubble=measured.bubble,
        live=_most_live(trace, plan),
        shown=shown,
        until_ns=_end_of(trace, shown) if trace.period_ns is not None else trace.total_ns,
        parts=plan.pipeline_length // shape.stages,
    )


def _schedule_shape(
    services: HostServices, name: str, capabilities: ScheduleCapabilities, shape: Shape
) -> tuple[Problem, Plan, Schedule]:
    """The stages, cut into parts where a pipeline comes by a device more than once, placed as the scheduler takes
    them: of several placements the first that has this number of stages and that it orders.
    """
    periodic = capabilities.produces == "periodic"
    refused: UnsupportedProblem | None = None
    for kind in _kinds(placements_of(capabilities)):
        parts = 1 if kind in ("apart", "mirrored") or periodic else shape.virtual
        pipelines = pipelines_of_kind(kind) or 1
        count = shape.stages * parts
        try:
            devices = sets_of_stages(kind, shape.stages, count * pipelines) if shape.stages > 0 else ()
        except InvalidValue as error:
            typed = "draw it with --vpp 2" if kind == "v" else None
            refused = refused or UnsupportedProblem(f"{name}: {error.message}", typed)
            continue
        if shape.micro_batches % pipelines:
            reason = f"{name}: {shape.micro_batches} micro-batches, {pipelines} pipelines have as many each"
            refused = refused or UnsupportedProblem(reason, "draw an even number of micro-batches")
            continue
        problem, plan = synthetic(
            count,
            shape.micro_batches,
            forward_s=shape.forward / parts * UNIT_S,
            backward_s=shape.backward / parts * UNIT_S,
            transfer_s=shape.transfer * UNIT_S,
            mode="async" if periodic else "sync",
            weight_gradient_s=shape.weight / parts * UNIT_S,
            devices=devices,
            pipelines=pipelines,
        )
        try:
            return problem, plan, services.schedule(name, problem, plan)
        except UnsupportedProblem as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _kinds(placements: Sequence[PlacementKind]) -> list[PlacementKind]:
    """What is tried: the placements; for `listed` stages in turn, in a wave and of one a device."""
    listed: dict[PlacementKind, tuple[PlacementKind, ...]] = {"listed": ("in-turn", "wave", "apart")}
    return list(dict.fromkeys(kind for each in placements for kind in listed.get(each, (each,))))


def _end_of(trace: Trace, micro_batches: int) -> int:
    return max(end for end, number in zip(trace.end_ns, trace.micro_batch, strict=True) if number < micro_batches)


def _most_live(trace: Trace, plan: Plan) -> tuple[int, ...]:
    placed = [stage.devices[0] for stage in plan.stages]
    events: list[list[tuple[int, int]]] = [[] for _ in range(max(placed) + 1)]
    for stage, kind, start, end in zip(trace.stage, trace.kinds, trace.start_ns, trace.end_ns, strict=True):
        if kind == "F":
            events[placed[stage]].append((start, 1))
        elif kind in "BW":
            events[placed[stage]].append((end, -1))
    most = []
    for happened in events:
        live = peak = 0
        for _, change in sorted(happened):
            live += change
            peak = max(peak, live)
        most.append(peak)
    return tuple(most)
