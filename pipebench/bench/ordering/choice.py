"""The schedule that counts for a plan: the fastest that is valid, of all schedulers that take the plan."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipebench.bench.machine.time_limits import scoring_limit
from pipebench.bench.ordering.adaptation import adapted_plans, changes, sizes
from pipebench.bench.ordering.errand import Attempt, OrderReply
from pipebench.bench.ordering.schedulers import candidates, order_all
from pipebench.bench.score import judge
from pipebench.check import check_plan
from pipebench.defaults import schedulers
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import FiniteSchedule, Schedule
from pipebench.domain.value import digest
from pipebench.domain.verdict import Verdict
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.simulation.step_time import mini_batch_s

OWN = "own"


@dataclass(frozen=True, slots=True)
class OrderedPlan:
    """A plan, its schedule, the name of who made it, and the check's verdict on both.

    planned_micro_batch, own_scheduler, own_scheduler_s: as in the row. notes: lines for the row.
    """

    plan: Plan
    schedule: Schedule
    scheduler: str
    verdict: Verdict
    planned_micro_batch: tuple[int, ...] = ()
    own_scheduler: str = ""
    own_scheduler_s: float | None = None
    notes: tuple[str, ...] = field(default=())

    def fields(self) -> dict[str, Any]:
        """What the row says of the choice."""
        names = ("scheduler", "planned_micro_batch", "own_scheduler", "own_scheduler_s")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class OrderFailure:
    """A plan without a schedule. reason: the first scheduler's, or what is wrong with the plan itself.

    verdict: of a plan that is wrong under any schedule.
    """

    status: Literal["infeasible", "unsupported", "timeout", "crashed", "invalid_plan"]
    reason: str
    scheduler: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class _ScoredOrder:
    """An attempt that was ordered. seconds: None where the check found it invalid."""

    tried: Attempt
    schedule: Schedule
    verdict: Verdict
    seconds: float | None

    @property
    def rank(self) -> tuple[int, float]:
        """Smaller is better: inside the reserve, then beyond it, then invalid; within each the faster one."""
        if self.seconds is None:
            return 2, 0.0
        return int(self.verdict.fit == "tight"), self.seconds


def order_plan(
    host: Host,
    problem: Problem,
    planner: Planner,
    result: PlanResult,
    named: str | None,
    offered: Sequence[str],
    adapted: bool,
    seed: int,
) -> OrderedPlan | OrderFailure:
    """The plan in the order that counts on `problem`.

    A schedule that comes with the plan stands, unless the user has named a scheduler. Else each scheduler that
    takes the plan is tried. offered: those to choose from, options included; empty: all of the suite's.

    The planner's own default keeps to the in-flight numbers of the plan; other schedulers choose theirs. adapted:
    the plan was made for the other regime. Then its micro-batch is chosen under the first scheduler that takes it,
    and its order among all.

    Raises LimitReached where scoring takes too long.
    """
    if result.schedule is not None and not named and not adapted:
        with scoring_limit():
            verdict = judge(problem, result.plan, result.schedule)
        return OrderedPlan(result.plan, result.schedule, result.scheduler or OWN, verdict)
    own = planner.default_scheduler.get(problem.regime.mode, "")
    names = [named] if named else list(offered) or candidates(host, planner, problem.regime.mode, result.plan)
    plans = adapted_plans(problem, result.plan) if adapted else (result.plan,)
    if not names or not plans:
        why = "no scheduler takes this plan" if not names else "no micro-batch of this plan divides the mini-batch"
        return OrderFailure("unsupported", f"{why} in {problem.regime.mode}")
    verdict = check_plan(problem, plans[0])
    if verdict.witness is not None and verdict.witness.rule != "memory":  # what is in flight is up to schedulers
        return OrderFailure("invalid_plan", verdict.witness.message, verdict=verdict)
    search = _Search(host, problem, own, seed)
    if len(plans) == 1:
        search.tries([_attempt(plans[0], name, own) for name in names])
        return search.outcome(result.plan if adapted else None)
    tried = 0
    for name in names:
        tried += 1
        if search.tries([_attempt(plan, name, own) for plan in plans]):
            break
    if search.found and names[tried:]:
        plan = min(search.found, key=lambda scored: scored.rank).tried.plan
        search.tries([_attempt(plan, name, own) for name in names[tried:]])
    return search.outcome(result.plan if adapted else None)


def flush_notes(problem: Problem, ordered: OrderedPlan, named: str | None) -> tuple[str, ...]:
    """That a plan drains at each mini-batch in the regime without a flush. named: the user's scheduler."""
    if problem.regime.mode == "sync" or not isinstance(ordered.schedule, FiniteSchedule):
        return ()
    said = "finite schedule with a flush in the async regime: the pipeline drains at each mini-batch, as in sync"
    return (f"{said} (use {schedulers()['async']}, or --regime sync)" if named else said,)


def _attempt(plan: Plan, name: str, own: str) -> Attempt:
    return Attempt(plan=plan if name == own else plan.without_in_flight(), scheduler=name)


class _Search:
    """The attempts so far. own: the planner's default scheduler."""

    def __init__(self, host: Host, problem: Problem, own: str, seed: int) -> None:
        self._host, self._problem, self._own, self._seed = host, problem, own, seed
        self._known: dict[str, _ScoredOrder] = {}
        self._failed: list[tuple[Attempt, OrderReply]] = []
        self.found: list[_ScoredOrder] = []

    def tries(self, attempts: Sequence[Attempt]) -> bool:
        """Whether one of them was ordered."""
        before = len(self.found)
        replies = order_all(self._host, self._problem, attempts, self._seed)
        for tried, reply in zip(attempts, replies, strict=True):
            if reply.schedule is None:
                self._failed.append((tried, reply))
            else:
                self.found.append(self._score(tried, reply.schedule))
        return len(self.found) > before

    def _score(self, tried: Attempt, schedule: Schedule) -> _ScoredOrder:
        """Equal orders are judged once: many schedulers agree where little is left to choose."""
        key = digest((tried.plan, schedule))
        if key in self._known:
            known = self._known[key]
            return _ScoredOrder(tried, schedule, known.verdict, known.seconds)
        with scoring_limit():
            verdict = judge(self._problem, tried.plan, schedule)
            seconds = None
            if verdict.status != "invalid":
                seconds = mini_batch_s(self._problem, tried.plan, schedule)
        self._known[key] = _ScoredOrder(tried, schedule, verdict, seconds)
        return self._known[key]

    def outcome(self, planned: Plan | None) -> OrderedPlan | OrderFailure:
        """The best of all attempts. planned: the plan before it was adapted."""
        if not self.found:
            tried, reply = self._failed[0]
            status = {"timeout": "timeout", "failed": "crashed"}.get(reply.ending, reply.ending)
            return OrderFailure(status, reply.reason, tried.scheduler)  # type: ignore[arg-type]
        best = min(self.found, key=lambda scored: scored.rank)
        notes = [] if planned is None else [f"adapted: {text}" for text in changes(planned, best.tried.plan)]
        own = self._own if best.tried.scheduler != self._own else ""
        own_s, trouble = self._beside() if own else (None, "")
        notes += [f"its own scheduler, {own}, {trouble}"] if trouble else []
        notes += [
            f"scheduler {tried.scheduler}: {reply.reason}"
            for tried, reply in self._failed
            if reply.ending in ("timeout", "failed")
        ]
        moved = planned is not None and sizes(planned) != sizes(best.tried.plan)
        return OrderedPlan(
            best.tried.plan,
            best.schedule,
            best.tried.scheduler,
            best.verdict,
            planned_micro_batch=sizes(planned) if planned is not None and moved else (),
            own_scheduler=own if own_s is not None or trouble else "",
            own_scheduler_s=own_s,
            notes=tuple(notes),
        )

    def _beside(self) -> tuple[float | None, str]:
        """The time of the plan under the planner's own default scheduler, or why it has none."""
        for scored in self.found:
            if scored.tried.scheduler == self._own and scored.seconds is not None:
                return scored.seconds, ""
            if scored.tried.scheduler == self._own and scored.verdict.witness is not None:
                return None, f"makes an invalid order of its plan ({scored.verdict.witness.rule})"
        for tried, reply in self._failed:
            if tried.scheduler == self._own:
                return None, f"makes none: {reply.reason.partition(' (')[0]}"
        return None, ""
