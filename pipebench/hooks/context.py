"""The context of a component's call. A new need becomes a new field, so that no signature changes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pipebench.domain.cluster import DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Framework
from pipebench.domain.profile import Precision
from pipebench.domain.tuning import USUAL_REACH, Reach

if TYPE_CHECKING:
    from pipebench.domain.placement import PlacementKind
    from pipebench.domain.plan import Plan
    from pipebench.domain.problem import Problem
    from pipebench.domain.result import PlanResult
    from pipebench.domain.schedule import Schedule
    from pipebench.domain.trace import Trace


class DeadlineReached(PipebenchError):
    """The time limit passed; a planner that has a plan returns it with termination `limit` instead."""


class Services(Protocol):
    """Other components by name, as the host offers them to a context. Their time counts as the caller's.

    schedule and plan raise UndeclaredCall for a name that is not in `calls` of the caller's descriptor. The
    scheduler that the user names (Context.scheduler) may always be called.
    """

    def schedule(self, name: str, problem: "Problem", plan: "Plan") -> "Schedule":
        """The schedule that the scheduler of that name makes."""

    def simulate(self, problem: "Problem", plan: "Plan", schedule: "Schedule") -> "Trace":
        """The trace of the suite's simulator."""

    def simulated_ns(self, problem: "Problem", plan: "Plan", schedule: "Schedule") -> int:
        """The length of that trace in ns."""

    def plan(self, name: str, problem: "Problem") -> "PlanResult":
        """The result of the planner of that name."""


def _silent(done: float, message: str) -> None:
    del done, message


def _dropped(result: "PlanResult") -> None:
    del result


@dataclass(slots=True)
class Context:
    """Options, limits and services of one call.

    options: the component's options.
    seed: for everything random.
    deadline_s: value of time.monotonic() at which to stop, or None.
    report(done, message): reports progress; done is in [0, 1].
    offer(result): for a planner the best that it has so far; it counts where the search is ended from outside.
    counters: work done (states expanded, LP size, nodes …), exact from run to run. The counters of a called
    component are added as "name.counter".
    request: what a slot needs besides (see descriptors).
    notices: lines for the row.
    scheduler: for a planner the scheduler that will order its plan, where the user names one; else empty.
    placements: the placements that this scheduler declares; empty where the user names none.
    trusted: import paths out of files that the user trusts. A component imports no other name out of a file.
    seeds: for a planner plans to start from, each with the name of the planner that made it.
    offered: for a planner the schedulers that alone may order its plan; empty: all that take it.
    bound_ns: for a planner a mini-batch's time that no plan is below, where it is known; else 0.
    admits(problem, plan): for a planner whether a plan counts, as where a framework must express it; None: any.
    """

    options: Any
    seed: int = 0
    deadline_s: float | None = None
    services: Services | None = None
    report: Callable[[float, str], None] = _silent
    counters: dict[str, int] = field(default_factory=dict)
    request: Any = None
    notices: list[str] = field(default_factory=list)
    scheduler: str = ""
    placements: "tuple[PlacementKind, ...]" = ()
    trusted: frozenset[str] = frozenset()
    seeds: "tuple[tuple[str, Plan], ...]" = ()
    offered: tuple[str, ...] = ()
    bound_ns: int = 0
    admits: "Callable[[Problem, Plan], bool] | None" = None
    offer: "Callable[[PlanResult], None]" = _dropped

    def note(self, text: str) -> None:
        """Add a line for the user to read beside the result."""
        self.notices.append(text)

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a work counter."""
        self.counters[name] = self.counters.get(name, 0) + amount

    def out_of_time(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline_s is not None and time.monotonic() >= self.deadline_s

    def check_deadline(self) -> None:
        """Raise DeadlineReached when the deadline has passed."""
        if self.out_of_time():
            raise DeadlineReached("the time limit was reached")

    def _services(self) -> Services:
        if self.services is None:
            raise PipebenchError("this context offers no other components")
        return self.services

    def schedule(self, name: str, problem: "Problem", plan: "Plan") -> "Schedule":
        """The schedule that another scheduler makes; its time counts as the caller's."""
        return self._services().schedule(name, problem, plan)

    def simulate(self, problem: "Problem", plan: "Plan", schedule: "Schedule") -> "Trace":
        """The suite's simulation of a plan; its time counts as the caller's."""
        return self._services().simulate(problem, plan, schedule)

    def simulated_ns(self, problem: "Problem", plan: "Plan", schedule: "Schedule") -> int:
        """The ns that the suite's simulation of a plan takes, in half the time of its trace (`Trace.total_ns`)."""
        return self._services().simulated_ns(problem, plan, schedule)

    def plan(self, name: str, problem: "Problem") -> "PlanResult":
        """What another planner returns; its time counts as the caller's."""
        return self._services().plan(name, problem)


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """The request to a profiler that measures links: number and type of devices."""

    devices: int
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The request to a profiler: device types with their facts, micro-batch sizes (ascending), precision.

    framework: the training framework whose kernels, launches and attention are priced; None: none in particular.
    links: of the cluster, for what tensor-parallel ranks of several nodes exchange; empty where it is not known.
    reach: what kernels reach of the device's rates under that framework.
    selective: whether layers of one operator are to have ways that recompute the core of their attention alone;
    those of other layers follow from their operators.
    model: the model to capture, for a profiler that captures models itself; else empty.
    scratch: a file in which the profiler may keep measurements, to resume from when it is run again; empty for
    none.
    expert_parallel: ranks that share out the experts of a layer (`Regime.expert_parallel`); the figures are then
    those of one of them, and the graph's parameters say which bytes are of experts (`costs.experts`). A profiler
    that knows nothing of it makes a profile that the host refuses.
    context_parallel: ranks that share out the sequence of each sample (`Regime.context_parallel`), likewise: the
    figures and the graph are those of one of them (`costs.shapes.context`).
    """

    devices: "tuple[DeviceType, ...]"
    micro_batches: tuple[int, ...]
    precision: "Precision" = "fp32"
    framework: Framework | None = None
    links: tuple[LinkLevel, ...] = ()
    reach: Reach = USUAL_REACH
    model: str = ""
    scratch: str = ""
    selective: bool = False
    expert_parallel: int = 1
    context_parallel: int = 1
