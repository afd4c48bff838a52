"""The best plan that a search knows, what the search has spent, and when it ends."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pipebench.algorithms.planning import idle_devices
from pipebench.costs.quantise import NS_PER_S
from pipebench.documents.units import quantity, readable_share
from pipebench.domain.plan import Plan
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_search.drafts.draft import Draft
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import Scored, Scorer

LOOKS, ROWS = 32, 512
"""So many looks of the clock, and so many rows of stages in annealing, count as a plan that was scored."""
TIME_IS_OVER = "the time is over"
LEAST_MARGIN_S = 0.3
"""Before the deadline; more where scoring a plan takes long."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scored plan with its draft, who made the plan that it comes from, and the moves since."""

    scored: Scored
    draft: Draft | None
    source: str
    moves: tuple[str, ...] = ()


class Incumbent:
    """Of one search. bound_ns: the proven bound. options: when it ends.

    best: the fastest plan. first: the one that the search began with. ended: why it ended, '' before.
    patient: while every plan is looked at: that nothing better comes is no reason to end.
    """

    def __init__(self, context: Context, scorer: Scorer, bound_ns: int, options: SearchOptions) -> None:
        self._context, self._scorer = context, scorer
        self._bound_ns, self._gap, self._stall = bound_ns, options.gap, options.stall
        self._starts, self._in_vain = options.starts, 0
        self._steps = options.steps * len(scorer.model.graph.operators)
        self._scored, self._looks = 0, 0.0
        self._improved_at = self._longest_s = 0.0
        self._began_s = self._told_s = time.monotonic()
        self.patient = False
        self.best: Candidate | None = None
        self.first: Candidate | None = None
        self.ended = ""

    def note(self, candidate: Candidate) -> None:
        """A scored plan: it may be the best."""
        if self.best is None or candidate.scored.rank < self.best.scored.rank:
            self.best, self._improved_at, self._in_vain = candidate, self.spent, 0
            self._context.offer(self.result())
            self._tell()

    def look(self, count: int = 1, each: int = LOOKS) -> None:
        """So many more looks at neighbours, of which `each` count as a plan that was scored."""
        self._looks += count / each
        self._context.count("neighbours", count)
        if time.monotonic() - self._told_s >= 1.0:
            self._tell()

    def score(self, plan: Plan, below: tuple[bool, int] | None, kept: bool = False) -> Scored | None:
        """As `Scorer.score`; it is counted."""
        return self._counted(lambda: self._scorer.score(plan, below, kept))

    def as_annealed(self, plan: Plan) -> Scored | None:
        """As `Scorer.as_annealed`; it is counted."""
        return self._counted(lambda: self._scorer.as_annealed(plan))

    def _counted(self, score: Callable[[], Scored | None]) -> Scored | None:
        began_s = time.monotonic()
        scored = score()
        self._scored += 1
        ended_s = time.monotonic()
        self._longest_s = max(self._longest_s, ended_s - began_s)
        if ended_s - self._told_s >= 1.0:
            self._tell()
        return scored

    @property
    def spent(self) -> float:
        """Plans that were scored, and looks at neighbours in such plans."""
        return self._scored + self._looks

    def late(self, share: float = 1.0) -> bool:
        """Whether there is no time to score one more plan. share: of the time of the whole search."""
        deadline_s = self._context.deadline_s
        if deadline_s is None:
            return False
        until_s = self._began_s + share * (deadline_s - self._began_s)
        return time.monotonic() >= until_s - LEAST_MARGIN_S - 2.0 * self._longest_s

    def late_after(self, share: float) -> Callable[[], bool]:
        """Whether so much of the time that is left now is over then; never, where nothing limits it."""
        deadline_s, now_s = self._context.deadline_s, time.monotonic()
        if deadline_s is None:
            return lambda: False
        until_s = now_s + share * (deadline_s - now_s)
        return lambda: time.monotonic() >= until_s

    def over(self) -> bool:
        """Whether the gap, the number of plans or the time ends the search."""
        if self.best is not None and self.best.scored.ns <= self._bound_ns * (1.0 + self._gap):
            at_bound = self.best.scored.ns <= self._bound_ns
            self.ended = (
                "the bound is reached" if at_bound else f"the gap of {readable_share(self._gap)} is reached"
            )
        elif self._steps and self.spent >= self._steps:
            self.ended = f"{self._steps} plans were scored"
        elif self._given_up():
            starts = f" from each of {self._starts} starts in a row" if self._starts > 1 else ""
            self.ended = f"local optimum, {quantity(self._stall, 'plan')}{starts} brought no better one"
        elif self.late():
            self.ended = TIME_IS_OVER
        return bool(self.ended)

    def _given_up(self) -> bool:
        """Whether many plans have brought no better one; while all are looked at, that is no reason to end."""
        known = self.best is not None and not self.patient
        return known and 0 < self._stall <= self.spent - self._improved_at

    def begins_again(self) -> bool:
        """Whether a search that was given up begins again; not after so many starts in a row in vain."""
        if not self._given_up() or self.late() or self._in_vain + 1 >= self._starts:
            return False
        self._in_vain += 1
        self._improved_at, self.ended = self.spent, ""
        return True

    def left(self, looks: int, look_s: float, share: float) -> int:
        """So many looks at rows of stages, or fewer where less work or time is left. look_s: of a look. share: of
        what is left.
        """
        most = self.in_time(looks, look_s, share)
        if self._steps:
            most = min(most, int(share * (self._steps - self.spent) * ROWS))
        return max(1, most)

    def in_time(self, most: int, each_s: float, share: float) -> int:
        """So many, or fewer where less time is left. each_s: of one. share: of what is left."""
        if self._context.deadline_s is None:
            return most
        left_s = self._context.deadline_s - LEAST_MARGIN_S - time.monotonic()
        return max(0, min(most, int(share * left_s / max(each_s, 1e-9))))

    def _tell(self) -> None:
        """Progress as solvers show it: incumbent, bound, gap."""
        if self.best is None:
            return
        self._told_s = now_s = time.monotonic()
        best_ns, deadline_s = self.best.scored.ns, self._context.deadline_s
        done = self.spent / self._steps if self._steps else 0.0
        if deadline_s is not None:
            done = max(done, (now_s - self._began_s) / max(deadline_s - self._began_s, 1e-9))
        self._context.report(min(done, 1.0), self.line(best_ns))

    def line(self, best_ns: int) -> str:
        """Incumbent, bound and gap in words."""
        samples = self._scorer.problem.mini_batch / (best_ns / 1e9) if best_ns else 0.0
        gap = readable_share(best_ns / self._bound_ns - 1) if self._bound_ns else "-"
        known = f"best {samples:.5g} samples/s ({best_ns / 1e9:.4g} s), bound {self._bound_ns / 1e9:.4g} s"
        return f"{known}, gap {gap}, {quantity(self._scored, 'plan')}"

    def result(self) -> PlanResult:
        """The best plan so far, and how it came about."""
        assert self.best is not None
        best = self.best.scored
        return PlanResult(
            plan=best.plan,
            schedule=best.schedule,
            scheduler=best.scheduler,
            claimed_s=best.ns / NS_PER_S,
            termination="limit" if self.ended == TIME_IS_OVER else "heuristic",
            notices=(*self._account(), *idle_devices(self._scorer.problem, best.plan)),
        )

    def _account(self) -> tuple[str, ...]:
        """Lines for the row: whose plan it began with, what the search gained, why it ended."""
        assert self.best is not None
        first, best = (self.first or self.best).scored, self.best.scored
        lines = [f"search ended: {self.ended or 'before its time'}; {self.line(best.ns)}"]
        if best.rank < first.rank:
            counted = Counter(self.best.moves)
            moves = ", ".join(f"{label} x {n}" if n > 1 else label for label, n in sorted(counted.items()))
            gain = (
                f"{readable_share(1 - best.ns / first.ns)} less time"
                if best.ns < first.ns
                else "inside the reserve"
            )
            of = f"of {self.best.source}" if self.best.source else ""
            source = (self.first or self.best).source
            lines.append(f"search improved on {source} ({_timed(first)}): {gain}")
            lines.append(f"its plan comes from that {of} by: {moves or 'another order of its tasks'}")
        else:
            lines.append(f"search found nothing better than the plan of {self.best.source} ({_timed(best)})")
        return tuple(lines)


def _timed(scored: Scored) -> str:
    """The time with the order of tasks that it is of: a planner's own may be a slower one."""
    return f"{scored.ns / NS_PER_S:.4g} s under {scored.scheduler}"
