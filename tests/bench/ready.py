"""Planners made in a test, ready to run."""

from collections.abc import Callable
from typing import Any

from pipebench.bench.components import Ready
from pipebench.bench.problems.workload import Workload
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.hooks.descriptors import Capabilities, NoOptions, Planner
from pipebench.hooks.discovery import Provider


def planner(
    call: Callable[..., Any],
    name: str = "mine",
    regimes: tuple[RegimeMode, ...] = ("sync",),
    calls: tuple[str, ...] = (),
) -> Ready:
    """A function as a planner of a comparison, run in this process. calls: what it declares to call."""
    component = Planner(name=name, summary="", load="", capabilities=Capabilities(regimes=regimes), calls=calls)
    return Ready(name, component, NoOptions(), lambda: call, Provider("test", "0", name), here=True)


def workload(problem: Problem) -> Workload:
    """The workload behind a problem."""
    return Workload(problem.profile.name, problem)
