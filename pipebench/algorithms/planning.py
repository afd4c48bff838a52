"""What every planner needs of a problem: bytes that it may plan for, what a candidate takes, devices left idle."""

from collections.abc import Sequence
from typing import Protocol

from pipebench.costs.estimate import estimate
from pipebench.costs.quantise import whole_bytes
from pipebench.defaults import scheduler_for
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import Recompute, of_layers, of_stages
from pipebench.domain.schedule import PeriodicSchedule, Schedule


def memory_limits(problem: Problem, devices: Sequence[int] | None = None) -> tuple[int, ...]:
    """Bytes to plan for, in the order to try them: memory less the reserve, then the whole memory.

    The memory is that of the smallest of `devices` (ids; None: all of the cluster). A plan found under the
    first limit fits, one found only under the second is tight. Without a reserve there is one limit.
    """
    cluster = problem.cluster
    if devices is None:
        memory = cluster.memory_bytes
    else:
        memory = min(cluster.type_of(device).memory_bytes for device in devices)
    usable = memory - whole_bytes(memory * problem.pins.reserve)
    return (usable, memory) if usable < memory else (memory,)


def whole_stages(problem: Problem, planner: str) -> Recompute:
    """How the pin wants each stage, for a planner that recomputes stages as a whole or not at all.

    planner: its name. Raises UnsupportedProblem where the pin is about layers.
    """
    pinned = problem.pins.recompute
    if layers := of_layers(pinned):
        raise UnsupportedProblem(
            f"{planner} recomputes whole stages or nothing, recompute={layers} is pinned",
            "pin stage or none, or name a planner that chooses how each operator runs",
        )
    return of_stages(pinned)


def refuse_recomputation(problem: Problem, planner: str) -> None:
    """Raise UnsupportedProblem where recomputation is pinned, for a planner that has none."""
    pinned = problem.pins.recompute
    if pinned not in (None, "none"):
        raise UnsupportedProblem(f"{planner} does not recompute, recompute={pinned} is pinned")


class Offers(Protocol):
    """What this needs of a planner's context (hooks.context.Context)."""

    @property
    def services(self) -> object | None:
        """None: no other components, the closed form has to do."""

    def schedule(self, name: str, problem: Problem, plan: Plan) -> Schedule:
        """The schedule that another scheduler makes."""

    def simulated_ns(self, problem: Problem, plan: Plan, schedule: Schedule) -> int:
        """The ns that the suite's simulation takes."""


def mini_batch_ns(problem: Problem, plan: Plan, context: Offers) -> int | None:
    """Nanoseconds of one mini-batch; None when the scheduler finds no schedule that fits in memory.

    sync: the simulation of the plan under 1F1B. async: the period of 1F1B*, or of 1F1B-RR where replicas take
    micro-batches in turn, times the micro-batches. Without services: the suite's closed form.
    """
    if context.services is None:
        return estimate(problem, plan)
    name = scheduler_for(problem.regime.mode, in_turn=plan.takes_turns)
    try:
        schedule = context.schedule(name, problem, plan)
    except InfeasibleProblem:
        return None
    if isinstance(schedule, PeriodicSchedule):
        return schedule.period_ns * (problem.mini_batch // plan.stages[0].micro_batch)
    return context.simulated_ns(problem, plan, schedule)


def idle_devices(problem: Problem, plan: Plan) -> tuple[str, ...]:
    """One notice when there are some, none otherwise."""
    used, size = plan.devices_used, problem.cluster.size
    return (f"uses {used} of {size} devices",) if used < size else ()
