"""The bounds of a row, over every plan and over its class, each computed once for all rows of a problem."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pipebench.bench.machine.time_limits import SCORE_S, LimitReached, scoring_limit, time_limit
from pipebench.bounds import (
    CLASS,
    PLAIN,
    ClassBound,
    class_bound,
    in_class,
    memory_bound,
    recomputes,
    time_bound,
    unbounded,
)
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule

SUITE = "pipebench"
"""Who proved a class bound, where no planner did."""
NO_BOUND = "no proven bound"
NO_CLASS_BOUND = "no bound over stages in a row"
Found = TypeVar("Found")


def bound_fields(problem: Problem, split: bool = False) -> dict[str, Any]:
    """The proven bounds: bound_s with its kind, bound_memory_bytes.

    Over plans that do not split operators; split: over those that do as well.
    """
    time, memory = time_bound(problem, split), memory_bound(problem, split)
    return {"bound_s": time.value, "bound_kind": time.kind, "bound_memory_bytes": int(memory.value)}


class _Latest(Generic[Found]):
    """What was found for the latest problems, each with a flag."""

    KEPT = 64

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], Found] = {}

    def get(self, problem: Problem, flag: bool, find: Callable[[], Found]) -> Found:
        """What is known, or what `find` gives."""
        key = problem.problem_id, flag
        if key not in self._known:
            self._known[key] = find()
            while len(self._known) > self.KEPT:
                del self._known[next(iter(self._known))]
        return self._known[key]


class ProvenBounds:
    """The suite's proven bounds over every plan, computed once for all rows of a problem."""

    def __init__(self) -> None:
        self._known: _Latest[dict[str, Any] | LimitReached] = _Latest()

    def fields(self, problem: Problem, split: bool = False) -> dict[str, Any]:
        """As `bound_fields` gives them; none where they take too long (`notices`). Raises what it raises."""
        found = self._of(problem, split)
        if isinstance(found, LimitReached):
            return dict.fromkeys(("bound_s", "bound_kind", "bound_memory_bytes"))
        return found

    def notices(self, problem: Problem, split: bool = False) -> tuple[str, ...]:
        """Why a row has no proven bound; nothing where it has one."""
        found = self._of(problem, split)
        return (f"{NO_BOUND}: {found.message}",) if isinstance(found, LimitReached) else ()

    def _of(self, problem: Problem, split: bool) -> dict[str, Any] | LimitReached:
        def find() -> dict[str, Any] | LimitReached:
            try:
                with scoring_limit():
                    return bound_fields(problem, split)
            except LimitReached as late:
                return late

        return self._known.get(problem, split, find)


class ClassBounds:
    """The suite's own bounds over classes of plans, each computed once for all rows of a problem."""

    def __init__(self) -> None:
        self._known: _Latest[ClassBound | LimitReached | None] = _Latest()

    def of(self, problem: Problem, at_least_s: float | None, again: bool) -> ClassBound | LimitReached | None:
        """The bound; None where there is none, `LimitReached` where it takes too long.

        at_least_s: the bound over all plans. again: over plans that recompute, too.
        """

        def find() -> ClassBound | LimitReached | None:
            at_least_ns = 0 if at_least_s is None else round(at_least_s * NS_PER_S)
            try:
                with time_limit(SCORE_S, "bounding a class of plans", "the row has none"):
                    return class_bound(problem, at_least_ns, again)
            except LimitReached as late:
                return late

        return self._known.get(problem, again, find)

    def fields(self, problem: Problem, plan: Plan, schedule: Schedule, said: Mapping[str, Any]) -> dict[str, Any]:
        """The class bound of a row: the suite's where the plan is of its class and the planner proved no more.

        said: the row's other fields, with what its planner proved. A problem that is too large gives a notice, and
        so does one whose bound takes too long.
        """
        proven_s = said.get("class_bound_s")
        fields = {} if proven_s is None else {"class_bound_by": said["planner"]}
        if not in_class(problem, plan, schedule):
            return fields
        if why := unbounded(problem):
            return {**fields, "notices": (*said["notices"], f"{NO_CLASS_BOUND}: {why}")}
        again = recomputes(problem, plan)
        found = self.of(problem, said.get("bound_s"), again)
        if isinstance(found, LimitReached):
            return {**fields, "notices": (*said["notices"], f"{NO_CLASS_BOUND}: {found.message}")}
        if found is None or (proven_s is not None and proven_s >= found.value):
            return fields
        return {
            "class_bound_s": found.value,
            "class_bound_scope": CLASS if again else f"{CLASS}, {PLAIN}",
            "class_bound_kind": found.kind,
            "class_bound_recomputes": again,
            "class_bound_by": SUITE,
        }
