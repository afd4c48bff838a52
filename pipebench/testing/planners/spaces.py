"""Spaces of plans that the host defines, and the best plan of each by trying all: for small chains only."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.defaults import ONE_F_ONE_B, ONE_F_ONE_B_STAR
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.simulation.metrics import metrics

CONTIGUOUS = "contiguous, one micro-batch size, "


@dataclass(frozen=True, slots=True)
class Space:
    """Cuts of a chain into stages of one device each, in order, at one profiled micro-batch size."""

    name: str
    scheduler: str
    regime: RegimeMode


SPACES = (
    Space(f"{CONTIGUOUS}1F1B*", ONE_F_ONE_B_STAR, "async"),
    Space(f"{CONTIGUOUS}1F1B", ONE_F_ONE_B, "sync"),
)
"""`bound_scope` names one of them, with more conditions behind commas where there are any."""


def space_of(scope: str) -> Space | None:
    """The space that a scope names."""
    return next((space for space in SPACES if scope == space.name or scope.startswith(f"{space.name},")), None)


def best_seconds(services: HostServices, problem: Problem, space: Space) -> float | None:
    """The least simulated time of one mini-batch over all valid plans of the space; None when none is valid."""
    found = []
    for plan in _plans(problem):
        try:
            schedule = services.schedule(space.scheduler, problem, plan)
        except InfeasibleProblem:
            continue
        if judge(problem, plan, schedule).status == "valid":
            found.append(metrics(problem, plan, services.simulate(problem, plan, schedule)).seconds)
    return min(found, default=None)


def _plans(problem: Problem) -> Iterator[Plan]:
    graph = problem.profile.graph
    names = [graph.operators[position].name for position in graph.topological]
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    pinned = problem.pins.micro_batch
    for size in (pinned,) if pinned else profiled:
        if problem.mini_batch % size:
            continue
        for stages in range(1, min(len(names), problem.cluster.size) + 1):
            for cuts in combinations(range(1, len(names)), stages - 1):
                parts = [tuple(names[a:b]) for a, b in pairwise((0, *cuts, len(names)))]
                yield Plan(
                    stages=tuple(
                        Stage(operators=part, devices=(device,), micro_batch=size)
                        for device, part in enumerate(parts)
                    )
                )
