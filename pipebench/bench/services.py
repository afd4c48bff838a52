"""What the host offers: components by name, called by the host itself or by a component that runs."""

import time
from dataclasses import dataclass
from typing import Any

from pipebench.bench.components import Ready, ready_executor, ready_planner, ready_scheduler, refuse_ranks
from pipebench.bench.plugin_results import (
    as_result,
    as_schedule,
    as_trace,
    call_plugin,
    exact_result,
    exact_schedule,
    exact_trace,
)
from pipebench.defaults import SIMULATOR
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.calls import declared_calls, plain_name, undeclared_call_error
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import Component
from pipebench.hooks.manager import Host
from pipebench.hooks.placements import refuse_placement
from pipebench.hooks.syntax import parse_reference


class HostServices:
    """Components of one host, each loaded once. Its methods are the host's own calls: results are exact.

    undeclared: where it is given, a call that a component does not declare is made, and noted there as
    (caller, name); else it is refused.
    trusted: import paths out of files that components may import.
    """

    def __init__(
        self,
        host: Host,
        seed: int = 0,
        deadline_s: float | None = None,
        undeclared: list[tuple[str, str]] | None = None,
        trusted: frozenset[str] = frozenset(),
    ) -> None:
        self.host = host
        self.seed = seed
        self.deadline_s = deadline_s
        self.undeclared = undeclared
        self.trusted = trusted
        self._ready: dict[tuple[str, str], Ready] = {}

    def limit(self, limit_s: float | None) -> None:
        """From now on the deadline is so many seconds away; None for no deadline."""
        self.deadline_s = None if limit_s is None else time.monotonic() + limit_s

    def scheduler(self, name: str) -> Ready:
        """The scheduler of that name, options included. Raises PipebenchError when there is none."""
        key = ("schedulers", name)
        if key not in self._ready:
            self._ready[key] = ready_scheduler(self.host, name)
        return self._ready[key]

    def executor(self, name: str) -> Ready:
        """The executor of that name, options included. Raises PipebenchError when there is none."""
        key = ("executors", name)
        if key not in self._ready:
            self._ready[key] = ready_executor(self.host, name)
        return self._ready[key]

    def planner(self, name: str) -> Ready:
        """The planner of that name, options included. Raises PipebenchError when there is none."""
        key = ("planners", name)
        if key not in self._ready:
            self._ready[key] = ready_planner(self.host, parse_reference(name))
        return self._ready[key]

    def context(self, ready: Ready) -> Context:
        """A context for one call of a component; what it calls in turn adds to its counters."""
        return self.call_context(ready.component, ready.options)

    def call_context(self, component: Component, options: Any) -> Context:
        """The same, for a component that is not ready to run."""
        context = Context(options=options, seed=self.seed, deadline_s=self.deadline_s, trusted=self.trusted)
        context.services = _CallersServices(self, context, component, declared_calls(component, options))
        return context

    def host_context(self, counters: dict[str, int]) -> Context:
        """A context for kernels that the host itself runs: it may ask for anything. Counters are added there."""
        context = Context(options=None, seed=self.seed, deadline_s=self.deadline_s, counters=counters)
        context.services = _CallersServices(self, context)
        return context

    def schedule(self, name: str, problem: Problem, plan: Plan) -> Schedule:
        """The schedule that a scheduler makes. Raises PipebenchError when it fails or returns no schedule."""
        return exact_schedule(name, self.call_scheduler(name, problem, plan))

    def call_scheduler(self, name: str, problem: Problem, plan: Plan) -> object:
        """What a scheduler returns, not looked at.

        Raises UnsupportedProblem for a plan whose placement it does not take, PipebenchError when it fails.
        """
        ready = self.scheduler(name)
        refuse_placement(ready.component.name, ready.component, plan)
        context = self.context(ready)
        return call_plugin(f"scheduler {name!r}", lambda: ready.load()(problem, plan, context))

    def execute(
        self, name: str, problem: Problem, plan: Plan, schedule: Schedule, notices: list[str] | None = None
    ) -> Trace:
        """The trace of an executor; what it notes is added to notices.

        Raises UnsupportedProblem for a plan or schedule that it does not take, PipebenchError when it fails or
        returns no trace.
        """
        if name == SIMULATOR:
            return self.simulate(problem, plan, schedule)
        ready = self.executor(name)
        refuse_placement(ready.component.name, ready.component, plan, schedule)
        context = self.context(ready)
        try:
            returned = call_plugin(f"executor {name!r}", lambda: ready.load()(problem, plan, schedule, context))
        finally:
            if notices is not None:
                notices += [str(text) for text in context.notices]
        return exact_trace(name, returned)

    def simulate(self, problem: Problem, plan: Plan, schedule: Schedule) -> Trace:
        """The trace of the suite's simulator, which is the host's own code and no plugin's."""
        from pipebench.simulation.simulate import simulate

        return call_plugin("the simulator", lambda: simulate(problem, plan, schedule))

    def simulated_ns(self, problem: Problem, plan: Plan, schedule: Schedule) -> int:
        """The length of that trace."""
        from pipebench.simulation.step_time import length_of

        return call_plugin("the simulator", lambda: length_of(problem, plan, schedule).ns)

    def plan(self, name: str, problem: Problem) -> PlanResult:
        """The result of another planner."""
        ready = self.planner(name)
        refuse_ranks(ready.component, problem)
        context = self.context(ready)
        return exact_result(name, call_plugin(f"planner {name!r}", lambda: ready.load()(problem, context)))


@dataclass(frozen=True, slots=True)
class _CallersServices:
    """The services of one running component.

    What it calls counts as its own work: counters under the callee's name. Only the kind of a result is
    looked at: the time is the caller's, and what reaches the host is made exact there. component: the caller, None
    where it is the host. declared: what it may ask for by name.
    """

    host: HostServices
    caller: Context
    component: Component | None = None
    declared: frozenset[str] = frozenset()

    def schedule(self, name: str, problem: Problem, plan: Plan) -> Schedule:
        """The schedule that the scheduler of that name makes. Raises UndeclaredCall."""
        self._require_declaration(name)
        ready = self.host.scheduler(name)
        refuse_placement(ready.component.name, ready.component, plan)
        return as_schedule(name, self._call(name, ready, problem, plan))

    def simulate(self, problem: Problem, plan: Plan, schedule: Schedule) -> Trace:
        """The trace of the suite's simulator."""
        ready = self.host.executor(SIMULATOR)
        refuse_placement(ready.component.name, ready.component, plan, schedule)
        return as_trace(SIMULATOR, self._call(SIMULATOR, ready, problem, plan, schedule))

    def simulated_ns(self, problem: Problem, plan: Plan, schedule: Schedule) -> int:
        """The length of the trace of the suite's simulator; what it does counts as there."""
        from pipebench.simulation.step_time import length_of

        refuse_placement(SIMULATOR, self.host.executor(SIMULATOR).component, plan, schedule)
        length = length_of(problem, plan, schedule)
        for counter, amount in (("tasks", length.tasks), ("transfers", length.transfers)):
            self.caller.count(f"{SIMULATOR}.{counter}", amount)
        return length.ns

    def plan(self, name: str, problem: Problem) -> PlanResult:
        """The result of the planner of that name. Raises UndeclaredCall."""
        self._require_declaration(name)
        return as_result(name, self._call(name, self.host.planner(name), problem))

    def _require_declaration(self, name: str) -> None:
        if self.component is None or name == self.caller.scheduler or plain_name(name) in self.declared:
            return
        if self.host.undeclared is None:
            raise undeclared_call_error(self.component, name)
        self.host.undeclared.append((self.component.name, name))

    def _call(self, name: str, ready: Ready, *arguments: Any) -> object:
        context = self.host.context(ready)
        try:
            return ready.load()(*arguments, context)
        finally:
            for counter, amount in context.counters.items():
                self.caller.count(f"{name}.{counter}", amount)
