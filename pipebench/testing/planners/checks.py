"""The checks of one planner, in the order in which they are reported."""

from collections.abc import Callable, Iterator
from functools import partial

from pipebench.hooks.manager import Host
from pipebench.testing import problems
from pipebench.testing.planners.deadline import deadline
from pipebench.testing.planners.honesty import capabilities, claims
from pipebench.testing.planners.optimality import optimality
from pipebench.testing.planners.options import options
from pipebench.testing.planners.questions import Interview
from pipebench.testing.planners.repeats import calls, counters, determinism, silence, state
from pipebench.testing.planners.validity import case, infeasible, memory_edge, pins
from pipebench.testing.subject import Subject

CHECKS: dict[str, Callable[[Interview], None]] = {
    **{f"validity-{name}": partial(case, name=name) for name in problems.CASES},
    "infeasible": infeasible,
    "memory-edge": memory_edge,
    "pins": pins,
    "determinism": determinism,
    "counters": counters,
    "deadline": deadline,
    "capabilities": capabilities,
    "calls": calls,
    "claims": claims,
    "optimality": optimality,
    "silence": silence,
    "state": state,
    "options": options,
}


def planner_checks(host: Host, subject: Subject) -> Iterator[tuple[str, Callable[[], None]]]:
    """Name and work of each; the planner is asked when the first of them runs."""
    interview = Interview(host, subject)
    for name, check in CHECKS.items():
        yield name, partial(check, interview)
