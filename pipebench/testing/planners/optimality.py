"""Where a planner says `optimal` in a space that the host defines, it is: all plans of the space are tried."""

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
from pipebench.testing.calls import Answer
from pipebench.testing.planners.questions import EDGES, Interview, Question
from pipebench.testing.verdicts import Waived, first_failure

CONTIGUOUS = "contiguous, one micro-batch size, "


@dataclass(frozen=True, slots=True)
class PlanSpace:
    """Cuts of a chain into stages of one device each, in order, at one profiled micro-batch size."""

    name: str
    scheduler: str
    regime: RegimeMode


SPACES = (
    PlanSpace(f"{CONTIGUOUS}1F1B*", ONE_F_ONE_B_STAR, "async"),
    PlanSpace(f"{CONTIGUOUS}1F1B", ONE_F_ONE_B, "sync"),
)
"""`bound_scope` names one of them, with more conditions behind commas where there are any."""


def space_of(scope: str) -> PlanSpace | None:
    """The space that a scope names."""
    return next((space for space in SPACES if scope == space.name or scope.startswith(f"{space.name},")), None)


def best_seconds(services: HostServices, problem: Problem, space: PlanSpace) -> float | None:
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


CLOSE = 1e-9
ASKED = ("chain", *EDGES, "pin micro_batch")


def optimality(interview: Interview) -> None:
    """On the chain, with memory to spare and to the byte: no plan of the space is faster, no bound above it."""
    asked = [(q, a) for q, a in interview.plans if q.about in ASKED]
    stated = [(q, a) for q, a in asked if a.result is not None and a.result.bound_scope]
    first_failure(
        f"{q.call.name}: termination is optimal, bound_scope does not say among which plans"
        for q, a in asked
        if a.result is not None and a.result.termination == "optimal" and not a.result.bound_scope
    )
    known = [(q, a) for q, a in stated if a.result is not None and space_of(a.result.bound_scope)]
    if not known:
        scopes = sorted({a.result.bound_scope for _, a in stated if a.result is not None})
        spaces = ", ".join(repr(space.name) for space in SPACES)
        about = f"its scope is its own ({scopes[0]!r})" if scopes else "it claims no optimum"
        raise Waived(f"{about}; tried out are {spaces}")
    first_failure(reason for question, answer in known for reason in _wrong(interview, question, answer))


def _wrong(interview: Interview, question: Question, answer: Answer) -> Iterator[str]:
    result = answer.result
    assert result is not None
    space = space_of(result.bound_scope)
    assert space is not None
    if space.regime != question.mode:
        yield f"{question.call.name}: {space.name!r} is a space of {space.regime} plans"
        return
    best = best_seconds(interview.services, question.problem, space)
    if best is None:
        yield f"{question.call.name}: the space {space.name!r} holds no valid plan"
        return
    seconds = interview.seconds(question, answer)
    if result.termination == "optimal" and seconds > best * (1 + CLOSE):
        yield f"{question.call.name}: optimal at {seconds:.9g} s is said, the best of the space takes {best:.9g} s"
    if seconds < best * (1 - CLOSE):
        yield f"{question.call.name}: {seconds:.9g} s beats the best of its space, {best:.9g} s: it is not of it"
    if result.lower_bound_s is not None and result.lower_bound_s > best * (1 + CLOSE):
        yield f"{question.call.name}: bound {result.lower_bound_s:.9g} s, the best of the space takes {best:.9g} s"
