"""Why one plan is faster than another: what differs between them, changed one thing after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from pipebench.bench.machine.time_limits import LimitReached, scoring_limit
from pipebench.bench.ordering.errand import Attempt
from pipebench.bench.ordering.schedulers import order_all
from pipebench.bench.score import judge
from pipebench.bench.shape import cut_id
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import digest
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from pipebench.simulation.step_time import mini_batch_s

Aspect = Literal["cut", "replicas", "order", "recomputation", "micro-batch", "flush", "scheduler"]
ASPECTS: tuple[Aspect, ...] = ("cut", "replicas", "order", "recomputation", "micro-batch", "flush", "scheduler")
"""What may differ, in the order in which it is changed."""
STAGE_FIELDS: Mapping[Aspect, tuple[str, ...]] = {
    "replicas": ("devices", "data_parallel", "tensor_parallel", "replicas"),
    "recomputation": ("recompute", "choice", "sharding"),
    "micro-batch": ("micro_batch", "k"),
}
ANY_CUT_FIELDS: Mapping[Aspect, tuple[str, ...]] = {
    "recomputation": ("recompute",),
    "micro-batch": STAGE_FIELDS["micro-batch"],
}
"""Fields that a stage of other operators can have too."""
PLAN_FIELDS: Mapping[Aspect, tuple[str, ...]] = {
    "replicas": ("copies", "pipelines", "placement"),
    "order": ("order_edges", "routing"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """Changes that were made together, and seconds of a mini-batch before and after them."""

    aspects: tuple[Aspect, ...]
    before_s: float
    after_s: float


@dataclass(frozen=True, slots=True)
class State:
    """A plan on its problem, under a scheduler, or with the schedule that it brings.

    changed: the aspects of the second plan that it has; the others are those of the first.
    """

    problem: Problem
    plan: Plan
    scheduler: str
    changed: tuple[Aspect, ...]
    schedule: Schedule | None = None


def differences(first: PlannedProblem, second: PlannedProblem) -> tuple[Aspect, ...]:
    """What differs between two plans for one workload, in the order of ASPECTS.

    A flush comes or goes with a scheduler of its own.
    Where the cuts differ, replicas and the order of stages belong to the cut. So do recomputation and
    micro-batches, unless each plan has the same at all stages.
    """
    found: list[Aspect] = []
    if cut_id(first.plan) != cut_id(second.plan):
        found.append("cut")
        for aspect in ANY_CUT_FIELDS:
            one, other = _common(first.plan, aspect), _common(second.plan, aspect)
            found += [aspect] if one and other and one != other else []
    else:
        paired = _pair_stages(first.plan, second.plan)
        for aspect in ASPECTS:
            stages = any(
                getattr(one, name) != getattr(other, name)
                for one, other in zip(first.plan.stages, paired.stages, strict=True)
                for name in STAGE_FIELDS.get(aspect, ())
            )
            if stages or any(
                getattr(first.plan, name) != getattr(paired, name) for name in PLAN_FIELDS.get(aspect, ())
            ):
                found.append(aspect)
    if first.problem.regime.mode != second.problem.regime.mode:
        found.append("flush")
    elif first.scheduler != second.scheduler or (not found and first.schedule != second.schedule):
        found.append("scheduler")
    return tuple(found)


def _common(plan: Plan, aspect: Aspect) -> tuple[object, ...]:
    """The values that all stages have, as far as a stage of other operators can have them; () where none."""
    names = ANY_CUT_FIELDS[aspect]
    values = {tuple(getattr(stage, name) for name in names) for stage in plan.stages}
    if aspect == "recomputation" and any(any(stage.choice) or stage.sharding for stage in plan.stages):
        return ()
    return values.pop() if len(values) == 1 else ()


def _pair_stages(first: Plan, second: Plan) -> Plan:
    """The second plan with its stages in the order of the first; both have the same cut."""
    where = {frozenset(stage.operators): position for position, stage in enumerate(second.stages)}
    position = [where[frozenset(stage.operators)] for stage in first.stages]
    if len(set(position)) < len(position):  # stages of several pipelines hold the same operators
        return second
    new = {old: at for at, old in enumerate(position)}
    edges = tuple(sorted((new[one], new[other]) for one, other in second.order_edges))
    return replace(second, stages=tuple(second.stages[old] for old in position), order_edges=edges)


def states(first: PlannedProblem, second: PlannedProblem) -> list[State]:
    """The first plan, then with one aspect more of the second each, at the end the second."""
    aspects = differences(first, second)
    found = [State(first.problem, first.plan, first.scheduler, (), first.schedule)]
    for count in range(1, len(aspects)):  # a flush or another scheduler is the last to come
        changed = aspects[:count]
        found.append(State(first.problem, _mix(first.plan, second.plan, changed), first.scheduler, changed))
    if aspects:
        found.append(State(second.problem, second.plan, second.scheduler, aspects, second.schedule))
    return found


def _mix(first: Plan, second: Plan, changed: Sequence[Aspect]) -> Plan:
    """The first plan with these aspects of the second. What is in flight is left to schedulers."""
    if "cut" in changed:
        plan = second
        for aspect in ANY_CUT_FIELDS:
            common = _common(first, aspect)
            if aspect not in changed and common and _common(second, aspect):
                said = {**dict(zip(ANY_CUT_FIELDS[aspect], common, strict=True)), "in_flight": 0}
                plan = replace(plan, stages=tuple(replace(stage, **said) for stage in plan.stages))
        return plan.without_in_flight()
    other = _pair_stages(first, second)
    whole = {name: getattr(other, name) for aspect in changed for name in PLAN_FIELDS.get(aspect, ())}
    names = [name for aspect in changed for name in STAGE_FIELDS.get(aspect, ())]
    stages = tuple(
        replace(one, in_flight=0, **{name: getattr(two, name) for name in names})
        for one, two in zip(first.stages, other.stages, strict=True)
    )
    return replace(first, stages=stages, **whole)


class Explainer:
    """Explains pairs of plans of one workload. What several pairs need is ordered and simulated once."""

    def __init__(self, host: Host, seed: int = 0) -> None:
        self._host, self._seed = host, seed
        self._known: dict[str, float | None] = {}

    def explain(self, pairs: Sequence[tuple[PlannedProblem, PlannedProblem]]) -> list[list[Step]]:
        """For each pair the steps from the first plan to the second; none for two plans that are the same.

        A change that makes a plan that is not valid, or that no scheduler orders, is made with the next one. So
        the steps lead from one simulated time to the other exactly.
        """
        every = [states(*pair) for pair in pairs]
        self._order([state for listed in every for state in listed])
        return [self._steps(listed) for listed in every]

    def _steps(self, listed: Sequence[State]) -> list[Step]:
        timed = [(state, self._known[_key(state)]) for state in listed]
        if len(timed) < 2 or timed[0][1] is None or timed[-1][1] is None:
            return []
        before = timed[0][1]
        done = 0
        found = []
        for state, after in timed[1:]:
            if after is not None:
                found.append(Step(state.changed[done:], before, after))
                before, done = after, len(state.changed)
        return found

    def _order(self, every: Sequence[State]) -> None:
        """Time each state that is not known. Those of one problem go to schedulers together."""
        new = {_key(state): state for state in every if _key(state) not in self._known}
        by_problem: dict[str, list[tuple[str, State]]] = {}
        for key, state in new.items():
            if state.schedule is not None:
                self._known[key] = _seconds(state.problem, state.plan, state.schedule)
            elif parse_reference(state.scheduler).name not in self._host.slot("schedulers"):
                self._known[key] = None  # the planner's own order, which nobody makes for another plan
            else:
                by_problem.setdefault(state.problem.problem_id, []).append((key, state))
        for listed in by_problem.values():
            problem = listed[0][1].problem
            attempts = [Attempt(plan=state.plan, scheduler=state.scheduler) for _, state in listed]
            replies = order_all(self._host, problem, attempts, self._seed)
            for (key, state), reply in zip(listed, replies, strict=True):
                made = reply.schedule
                self._known[key] = None if made is None else _seconds(problem, state.plan, made)


def _key(state: State) -> str:
    return digest((state.problem.problem_id, digest(state.plan), state.scheduler, state.schedule))


def _seconds(problem: Problem, plan: Plan, schedule: Schedule) -> float | None:
    """The simulated time of a valid plan; None for another."""
    try:
        with scoring_limit():
            if judge(problem, plan, schedule).status == "invalid":
                return None
            return mini_batch_s(problem, plan, schedule)
    except (PipebenchError, LimitReached):
        return None
