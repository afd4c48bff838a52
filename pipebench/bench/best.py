"""The best plan of a workload: all planners', then a search's. It fits, and where asked can be expressed."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from pipebench.bench.components import Ready, lacking_ranks, ready_planner
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.machine.time_limits import LimitReached, time_limit
from pipebench.bench.problems.workload import Workload
from pipebench.bench.searches.compilation import compile_side_by_side
from pipebench.bench.searches.request import Start
from pipebench.bench.trials.trial import Outcome, Searches, Trial, run_trial
from pipebench.costs.quantise import NS_PER_S
from pipebench.defaults import FIRST_PLANNERS, NEXT_PLANNERS, SEARCH_PLANNER
from pipebench.documents.units import readable_share
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.row import Row
from pipebench.domain.value import digest
from pipebench.formats.frameworks.targets import Target
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_reference

LEAST_S = 1.0
"""A planner that would get less than this is not started. So much longer than the time of all planners scoring the
plan of one may take.
"""
FAIR_S = 5.0
"""Each gets this much as long as there is time: most take less, and those that matter most come first."""
SEARCHED = 0.5
"""Share of the time that is kept for the search; it gets what the planners leave, too."""
SHORT_TOY_S = 0.2
"""CPU seconds of a planner on each toy problem: its search time is not to be compared, and this is the user's."""
SEEDS = 8
"""Plans from which the search goes on: the fastest."""
STALL, LEAST_STALL, MOST_STALL = 50, 500, 2000
"""The search gives up after so many plans for each operator without a better one; and begins again."""
NEAR = 1.0001
"""Within this factor of the fastest the plan with the fewest stages is the best one."""
STARTS = 4
"""It ends when so many starts in a row brought no better plan."""
INTERRUPTED = "interrupted"
SCORING = "finding its plan and scoring it"
SCORING_HINT = "take fewer micro-batches, or a longer --timeout"
LONGER = "take a longer --timeout"
ROOMIER = "use more devices or memory, other pins, or --recompute full (or stage)"
OTHERWISE = "use other pins"
IDLE = "--allow-idle lets plans take part that leave devices idle"
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One planner. reason: why its plan does not take part; '' where it does."""

    planner: str
    outcome: Outcome | None
    reason: str = ""

    @property
    def row(self) -> Row | None:
        """Its row, where it ran."""
        return None if self.outcome is None else self.outcome.row


@dataclass(frozen=True, slots=True)
class Best:
    """entries: every planner. ranked: those whose plans take part, the winner first. why: the choice in words."""

    entries: tuple[Candidate, ...]
    ranked: tuple[Candidate, ...]
    why: tuple[str, ...] = field(default=())

    @property
    def winner(self) -> Outcome:
        """The outcome of the winner."""
        outcome = self.ranked[0].outcome
        assert outcome is not None
        return outcome


def best(
    host: Host,
    workload: Workload,
    regime: RegimeMode = "sync",
    *,
    timeout_s: float = 300.0,
    target: Target | None = None,
    scheduler: str | None = None,
    seed: int = 0,
    coarsen: int = 0,
    whole: bool = False,
    told: Told = lambda _: None,
    gap: float = 0.0,
    solved: Told = lambda _: None,
    compiling: Callable[[list[str]], None] = lambda _: None,
) -> Best:
    """Run every capable planner, each with a part of the time that is left; search from their plans; rank all.

    Capable: it has what the pins ask for; plans for the other regime are adapted. Planners with default options,
    one search each, not timed. The search begins with the fastest plans; it gets half of the time and what the
    planners leave. Times within `NEAR`: the one with fewer stages, then by name, the search last.
    coarsen: they see at most so many blocks of operators (0: the operators).
    whole: only plans that use every device take part.
    gap: planners and search end when the fastest plan is within this share of the proven bound.
    told: the name of each planner that starts. solved: what is known so far: best plan, bound, gap.
    compiling: the planners whose kernels are compiled first, once on a machine; the time does not count.
    An interrupt (Ctrl-C) ends planners and search; what was found until then is ranked, if there is any.
    Raises PipebenchError (nothing ran) with every reason where no plan takes part.
    """
    problem = workload.problem(regime)
    capable, entries = _capable(host, problem)

    def trial_of(planner: Ready) -> Trial:
        return Trial(
            workload=workload,
            regime=regime,
            planner=planner,
            scheduler=scheduler,
            repeat=0,
            timeout_s=timeout_s,
            memory_bytes=SEARCH_MEMORY_BYTES,
            seed=seed,
            parallel=True,
            toy_s=SHORT_TOY_S,
        )

    offered: tuple[str, ...] = ()
    if target is not None:
        offered = target.schedules if scheduler else target.schedulers(problem)
    terms = _Terms(target, offered, whole)
    portfolio = [replace(trial_of(ready), offered=offered, coarsen=coarsen) for ready in capable]
    search = trial_of(_searcher(host, gap, problem)) if SEARCH_PLANNER in host.slot("planners") else None
    everyone = [*portfolio, search] if search else portfolio
    compile_side_by_side(host, [(each.planner, each.searcher(each.planning)) for each in everyone], compiling)
    contest = _Contest(host, problem, entries, timeout_s, gap, terms, told, solved)
    for position, trial in enumerate(portfolio):
        kept_s = SEARCHED * timeout_s if search is not None else 0.0
        seconds = _planners_s(contest.left_s(), trial, len(portfolio), position)
        contest.enter(trial.planner.label, trial, seconds, contest.left_s() - kept_s + LEAST_S)
    if search is not None:
        search = replace(search, start=terms.start(contest.ranked(), contest.bound_ns), heard=solved)
        contest.enter(SEARCH_PLANNER, search, contest.left_s(), None)
    return contest.result()


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a plan must be to take part. target: the framework that must express it, under one of the schedulers
    that are offered. whole: it uses every device.
    """

    target: Target | None
    offered: tuple[str, ...]
    whole: bool

    def refusal(self, outcome: Outcome) -> str:
        """Why a planner's plan does not take part; '' where it does."""
        row, target = outcome.row, self.target
        if row.status != "ok" or outcome.plan is None:
            return f"{row.status}: {row.reason}"
        if row.verdict != "valid":
            return f"the check says {row.verdict}"
        if row.simulated_s is None:
            return "it could not be simulated"
        if target is not None:
            inexpressible = target.refusal(outcome.problem, outcome.plan)
            if inexpressible:
                return f"{target.name} cannot express it: {inexpressible}"
            if self.offered and row.scheduler not in self.offered:
                return f"{target.name} does not run it under {row.scheduler}"
        cluster = outcome.problem.cluster
        used, size = outcome.plan.devices_used * cluster.rank_count, cluster.accelerators
        return f"it uses {used} of {size} devices" if self.whole and used < size else ""

    def start(self, ranked: Sequence[Candidate], bound_ns: int) -> Start:
        """The fastest plans, from which the search goes on, what it must keep to, and the proven bound."""
        seeds: dict[str, tuple[str, Plan]] = {}
        for entry in ranked:
            if entry.outcome is not None and entry.outcome.plan is not None:
                seeds.setdefault(digest(entry.outcome.plan), (entry.planner, entry.outcome.plan))
        return Start(
            seeds=tuple(seeds.values())[:SEEDS],
            target="" if self.target is None else self.target.name,
            offered=self.offered,
            whole=self.whole,
            progress=True,
            bound_ns=bound_ns,
        )


class _Contest:
    """Planners run one after the other against one clock, which starts with it. entries: of those that do not run.
    terms: of taking part. The other parameters are those of `best`.
    """

    def __init__(
        self,
        host: Host,
        problem: Problem,
        entries: list[Candidate],
        timeout_s: float,
        gap: float,
        terms: _Terms,
        told: Told,
        solved: Told,
    ) -> None:
        self._host, self._entries, self._timeout_s, self._gap = host, entries, timeout_s, gap
        self._no_time = f"no time left of {timeout_s:g} s"
        self._terms, self._told, self._solved = terms, told, solved
        self._mini_batch = problem.mini_batch
        self._interrupted = False
        self._incumbent_s = math.inf
        self._until = time.monotonic() + timeout_s
        self._searches = Searches()
        self.bound_ns = _bound_ns(problem, self._searches)
        self._bound_s = self.bound_ns / NS_PER_S

    def left_s(self) -> float:
        """Of the time of all."""
        return self._until - time.monotonic()

    def ranked(self) -> list[Candidate]:
        """Those whose plans take part, the fastest first; but before it one as good that has fewer stages."""
        found = sorted((entry for entry in self._entries if not entry.reason), key=_order)
        near = [entry for entry in found if _order(entry)[0] <= NEAR * _order(found[0])[0]]
        first = min(near, key=lambda entry: (_order(entry)[1:], _order(entry)[0]), default=None)
        return found if first is None else [first, *(entry for entry in found if entry is not first)]

    def enter(self, label: str, trial: Trial, seconds: float, limit_s: float | None) -> None:
        """Run a planner for so long, or say why not. Raises KeyboardInterrupt where no plan is known yet.

        limit_s: with the scoring of its plan, which takes long where there are many micro-batches. Where it is
        None, or no plan is known yet, the plan is scored however long it takes.
        """
        reason = self._ended(seconds)
        outcome = None
        if not reason:
            self._told(label)
            limited: AbstractContextManager[None] = nullcontext()
            if limit_s is not None and math.isfinite(self._incumbent_s):
                limited = time_limit(round(limit_s, 1), SCORING, SCORING_HINT)
            try:
                with limited:
                    outcome = run_trial(self._host, replace(trial, timeout_s=seconds), self._searches)
                reason = self._terms.refusal(outcome)
            except LimitReached as late:
                reason = f"timeout: {late}"
            except KeyboardInterrupt:
                if not self.ranked():
                    raise
                self._interrupted, reason = True, INTERRUPTED
        self._entries.append(Candidate(label, outcome, reason))
        found_s = None if outcome is None else outcome.row.simulated_s
        if not reason and found_s is not None and found_s < self._incumbent_s:
            self._incumbent_s = found_s
            if trial.heard is None:  # else the search has said so itself
                self._solved(f"{label}: {known_so_far(self._mini_batch, found_s, self._bound_s)}")

    def _ended(self, seconds: float) -> str:
        """Why no planner starts any more; '' while one may."""
        if self._interrupted:
            return INTERRUPTED
        if self._incumbent_s <= self._bound_s * (1.0 + self._gap):
            return f"the gap of {readable_share(self._gap)} was reached before"
        return self._no_time if seconds < LEAST_S else ""

    def result(self) -> Best:
        """Raises PipebenchError with every reason where no plan takes part."""
        entries, ranked, target = self._entries, self.ranked(), self._terms.target
        if not ranked:
            raise self._no_plan()
        return Best(tuple(entries), tuple(ranked), tuple(_why(entries, ranked, target)))

    def _no_plan(self) -> PipebenchError:
        """Every reason, and what to do about those that there are."""
        alike: dict[str, list[str]] = {}
        for entry in self._entries:
            alike.setdefault(entry.reason, []).append(entry.planner)
        reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in alike.items())
        late = any(map(self._is_late, self._entries))
        answers = {entry.row.status for entry in self._entries if entry.row} - {"timeout", "unsupported"}
        hints = [LONGER] if late else []
        if late and not answers:
            what = f"{self._timeout_s:g} s is too short: no planner has a plan by then"
        else:
            target = self._terms.target
            what = "no planner has a plan that " + (
                "fits" if target is None else f"fits and {target.name} can express"
            )
            hints += [ROOMIER] if "infeasible" in answers else [] if late else [OTHERWISE]
            hints += [IDLE] if self._terms.whole else []
        return PipebenchError(f"{what}: {reasons}", "; ".join(hints), ExitCode.SOME_FAILED)

    def _is_late(self, entry: Candidate) -> bool:
        """Whether the time was too short for a planner."""
        return entry.reason == self._no_time or (entry.row is not None and entry.row.status == "timeout")


def _capable(host: Host, problem: Problem) -> tuple[list[Ready], list[Candidate]]:
    """Planners in their turn, the search apart; and why others are none."""
    capable: list[Ready] = []
    others: list[Candidate] = []
    for name in sorted(host.slot("planners"), key=_turn):
        if name == SEARCH_PLANNER:
            continue
        try:
            ready = ready_planner(host, Reference(name))
        except PipebenchError as error:
            others.append(Candidate(name, None, str(error)))
            continue
        reason = _incapable(ready, problem)
        if reason:
            others.append(Candidate(name, None, reason))
        else:
            capable.append(ready)
    return capable, others


def _searcher(host: Host, gap: float, problem: Problem) -> Ready:
    """The search as it goes on from other plans."""
    stall = min(max(STALL * len(problem.profile.graph.operators), LEAST_STALL), MOST_STALL)
    options = f"gap={gap!r},steps=0,stall={stall},starts={STARTS}"
    return ready_planner(host, parse_reference(f"{SEARCH_PLANNER}[{options}]"))


def known_so_far(mini_batch: int, best_s: float, bound_s: float) -> str:
    """The best plan, the bound and the gap, as solvers show them."""
    share = readable_share(best_s / bound_s - 1) if bound_s else "unknown"
    samples = f"{mini_batch / best_s:.5g} samples/s " if best_s else ""
    return f"best {samples}({best_s:.4g} s), bound {bound_s:.4g} s, gap {share}"


def _turn(name: str) -> tuple[bool, bool, str]:
    """The order in which planners run."""
    return name not in FIRST_PLANNERS, name not in NEXT_PLANNERS, name


def _planners_s(left_s: float, trial: Trial, planners: int, position: int) -> float:
    """What the next planner gets of the time that is left of all.

    The time for planners is divided into parts: as many as planners are left, but two for those that come first,
    and three for the next: most take far less.
    """
    rest_s = left_s - SEARCHED * trial.timeout_s
    name, parts = trial.planner.label, planners
    if name in FIRST_PLANNERS:
        parts = 2
    elif name in NEXT_PLANNERS:
        parts = 3
    return max(rest_s / min(planners - position, parts), min(rest_s, FAIR_S))


def _bound_ns(problem: Problem, searches: Searches) -> int:
    """The proven bound, found once for all rows; 0 where it takes too long, or where the pins leave no plan:
    planners say so.
    """
    try:
        return round((searches.proven_bounds.fields(problem)["bound_s"] or 0.0) * NS_PER_S)
    except PipebenchError:
        return 0


def _incapable(ready: Ready, problem: Problem) -> str:
    """What the planner lacks, from its description alone."""
    component = ready.component
    assert isinstance(component, Planner)
    able, pins = component.capabilities, problem.pins
    for needed, has, what in (
        ((pins.tensor_parallel or 1) > 1, able.tensor_parallel, "tensor parallelism"),
        ((pins.data_parallel or 1) > 1, able.replicas, "replicas"),
        (pins.recompute not in (None, "none"), able.recompute, "recomputation"),
    ):
        if needed and not has:
            return f"it has no {what}, which is pinned"
    lacking = lacking_ranks(able, problem.regime)
    return "" if lacking is None else f"it does not plan {lacking.what}"


def _order(entry: Candidate) -> tuple[float, int, bool, str]:
    row = entry.row
    assert row is not None
    assert row.simulated_s is not None
    return row.simulated_s, row.stages or 0, entry.planner == SEARCH_PLANNER, entry.planner


def _why(entries: list[Candidate], ranked: list[Candidate], target: Target | None) -> list[str]:
    first = ranked[0]
    assert first.row is not None
    mine = first.row.simulated_s or 0.0
    what = "simulated, fits" + (f", {target.name} can express it" if target else "")
    lines = [f"winner: {first.planner}, {mine:.4g} s ({what})"]
    others = [entry for entry in ranked[1:] if entry.planner != SEARCH_PLANNER]
    if others and others[0].row is not None:
        other = others[0].row.simulated_s or 0.0
        same = max(mine, other) <= NEAR * min(mine, other)
        how = (
            "the same time, more stages or a later name" if same else f"{readable_share(other / mine - 1)} slower"
        )
        lines.append(f"runner-up: {others[0].planner}, {other:.4g} s: {how}")
    else:
        lines.append("runner-up: none")
    left_out: dict[str, list[str]] = {}
    for entry in entries:
        row = entry.row
        if entry.planner == SEARCH_PLANNER and row is not None and row.status == "ok":
            lines += row.notices
        faster = row is not None and row.simulated_s is not None and row.simulated_s < mine
        if entry.reason:
            lead = f"faster with {row.simulated_s:.4g} s, but " if faster and row and row.simulated_s else ""
            left_out.setdefault(f"{lead}{entry.reason}", []).append(entry.planner)
    return [*lines, *(f"left out: {', '.join(planners)}: {why}" for why, planners in left_out.items())]
