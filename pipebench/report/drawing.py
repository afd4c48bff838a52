"""Schedules of a pipeline of equal stages, to be drawn: no model, no planner, no device needed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipebench.bench.components import ready_scheduler
from pipebench.bench.services import HostServices
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.descriptors import Scheduler
from pipebench.hooks.manager import Host
from pipebench.report.gantt.gantt import Gantt, gantt
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.gantt.text import timeline
from pipebench.report.units import percent
from pipebench.simulation.metrics import metrics
from pipebench.simulation.synthetic import synthetic


@dataclass(frozen=True, slots=True)
class Shape:
    """The pipeline: times are of one micro-batch on one stage, in any one unit (taken as ms).

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

    def _repr_html_(self) -> str:
        """The timeline as SVG, for notebooks."""
        return gantt_svg([self.gantt], self.scheduler)

    @property
    def summary(self) -> str:
        """Time, bubble and micro-batches in flight in one line."""
        per = " a micro-batch" if self.trace.period_ns is not None else ""
        flight = ",".join(f"{count / self.parts:g}" for count in self.live)
        return (
            f"{self.scheduler}: time {self.total:g}{per}, bubble {percent(self.bubble)}, "
            f"micro-batches in flight {flight}"
        )

    @property
    def gantt(self) -> Gantt:
        """The timeline; memory of such a pipeline is the micro-batches in flight, which the summary tells."""
        return replace(gantt(self.trace, self.summary, self.until_ns), memory=())


def drawings(host: Host, schedulers: Sequence[str], shape: Shape) -> list[Drawing]:
    """One drawing for each scheduler. Raises PipebenchError for an unknown one or a shape without stages."""
    return [_drawing(host, name, shape) for name in schedulers]


def _drawing(host: Host, name: str, shape: Shape) -> Drawing:
    component = ready_scheduler(host, name).component
    assert isinstance(component, Scheduler)
    periodic = component.capabilities.produces == "periodic"
    parts = shape.virtual if component.capabilities.shared_devices and not periodic else 1
    services = HostServices(host)
    problem, plan, schedule = _scheduled(services, name, shape, parts, "async" if periodic else "sync")
    trace = services.simulate(problem, plan, schedule)
    measured = metrics(problem, plan, trace)
    length_ns = trace.period_ns if trace.period_ns is not None else trace.total_ns
    shown = min(shape.micro_batches, max(trace.micro_batch) + 1)
    return Drawing(
        scheduler=name,
        trace=trace,
        total=length_ns / 1e6,
        bubble=measured.bubble,
        live=_most_live(trace, plan),
        shown=shown,
        until_ns=_end_of(trace, shown) if periodic else trace.total_ns,
        parts=parts,
    )


def _scheduled(
    services: HostServices, name: str, shape: Shape, parts: int, mode: RegimeMode
) -> tuple[Problem, Plan, Schedule]:
    """Parts of stages go round the devices in turn, or in a V, whichever of them the scheduler takes first."""
    first = list(range(shape.stages))
    refused: UnsupportedProblem | None = None
    for behind in (first, first[::-1])[: min(parts, 2)]:
        problem, plan = synthetic(
            shape.stages * parts,
            shape.micro_batches,
            forward_s=shape.forward / parts / 1e3,
            backward_s=shape.backward / parts / 1e3,
            transfer_s=shape.transfer / 1e3,
            mode=mode,
            weight_gradient_s=shape.weight / parts / 1e3,
            devices=[device for part in range(parts) for device in (behind if part % 2 else first)],
        )
        try:
            return problem, plan, services.schedule(name, problem, plan)
        except UnsupportedProblem as error:
            refused = refused or error
    assert refused is not None
    raise refused


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
