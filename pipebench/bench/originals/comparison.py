"""Both sides in turns on every problem: whether their optimum is equal, and what each took."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pipebench.bench.components import Ready, ready_planner
from pipebench.bench.machine.environment import environment
from pipebench.bench.originals.checkout import Checkout
from pipebench.bench.originals.problems import Search, arguments, numbers, problem
from pipebench.bench.originals.program import ReadyOriginal, answer_of
from pipebench.bench.searches.isolated import SearchLimits, compile_kernels, timed_search
from pipebench.bench.searches.request import Searcher, SearchRequest
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.manager import Host
from pipebench.hooks.originals import Original
from pipebench.hooks.syntax import parse_reference

LONG_S = 10.0
"""A search that takes longer is not repeated."""
LEAST_SHARE = 0.1
"""Of the CPU time of a start: what a search takes beyond it must be more before a ratio is told."""

Outcome = Literal["equal", "differs", "no answer", "failed"]


class Side(Value, frozen=True, kw_only=True):
    """What one side says. value: of its best plan, None for no plan or no answer. cpu_s: of each run, in seconds.

    no_plan: it says that there is none. reason: why there is no value.
    """

    value: float | None = None
    no_plan: bool = False
    reason: str = ""
    stopped: bool = False
    cpu_s: tuple[float, ...] = ()

    @property
    def median_s(self) -> float | None:
        """CPU seconds of a run."""
        return statistics.median(self.cpu_s) if self.cpu_s else None


class ComparedSearch(Value, frozen=True, kw_only=True):
    """A problem that both searched.

    outcome: `equal`: the same value to the digits that the original prints, or no plan on both sides. `no answer`:
    a side reached its time limit. `failed`: a side ended in an error.
    ratio: median over the pairs of their CPU time by ours; None where theirs is lost in that of its start.
    may_differ: why values may differ, of the case.
    """

    input: str
    label: str = ""
    planner: str
    outcome: Outcome
    theirs: Side
    ours: Side
    ratio: float | None = None
    may_differ: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether values differ that must be equal."""
        return self.outcome == "differs" and not self.may_differ


class OriginalComparison(Value, frozen=True, kw_only=True):
    """All problems of a checkout.

    commit: of the checkout, empty where it is unknown. start_s: CPU seconds of starting the original, taken off
    its times. commands: what was run. changed: files of the checkout that are not as they were before.
    """

    system: str
    repository: str
    commit: str
    finished_at: str
    environment: dict[str, str]
    commands: tuple[str, ...]
    limit_s: float
    start_s: float
    rows: tuple[ComparedSearch, ...]
    changed: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """Rows that ended so."""
        return sum(row.outcome == outcome for row in self.rows)


@dataclass(frozen=True, slots=True)
class Terms:
    """planner: whose original it is. limit_s: of each run, in seconds. pairs: of runs, as many as are worth it."""

    planner: str
    limit_s: float
    pairs: int


def hold_beside(
    host: Host,
    ready: ReadyOriginal,
    chosen: list[Search],
    terms: Terms,
    told: Callable[[str], None],
) -> tuple[ComparedSearch, ...]:
    """Every search on both sides, in turns. told: what runs now."""
    planners: dict[str, Ready] = {}
    rows: list[ComparedSearch] = []
    for count, search in enumerate(chosen, 1):
        told(f"{count} of {len(chosen)}: {search.said}")
        options = search.case.options
        reference = parse_reference(f"{terms.planner}[{options}]" if options else terms.planner)
        label = str(reference)
        if label not in planners:
            planners[label] = ready_planner(host, reference)
            compile_kernels(host, planners[label], Searcher(planner=label, regime=search.case.mode))
        rows.append(_compared(host, ready, planners[label], search, terms))
    return tuple(rows)


def summary(
    original: Original,
    checkout: Checkout,
    ready: ReadyOriginal,
    rows: tuple[ComparedSearch, ...],
    commands: tuple[str, ...],
    limit_s: float,
    before: dict[str, tuple[int, int]],
) -> OriginalComparison:
    """The whole. before: the state of the checkout before anything ran."""
    after = checkout.state()
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return OriginalComparison(
        system=original.system,
        repository=original.repository,
        commit=checkout.commit,
        finished_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        environment=environment(),
        commands=commands,
        limit_s=limit_s,
        start_s=ready.start_s,
        rows=rows,
        changed=tuple(changed),
    )


def _compared(host: Host, ready: ReadyOriginal, planner: Ready, search: Search, terms: Terms) -> ComparedSearch:
    """Theirs, ours, ours, theirs, …: as many pairs as are asked for, one where theirs is slow or has no answer."""
    case = search.case

    def row(outcome: Outcome, theirs: Side, ours: Side, ratio: float | None = None) -> ComparedSearch:
        return ComparedSearch(
            input=search.name,
            label=case.label,
            planner=planner.label,
            outcome=outcome,
            theirs=theirs,
            ours=ours,
            ratio=ratio,
            may_differ=case.may_differ,
        )

    try:
        figures = numbers(search)
        asked = problem(host, search, figures)
    except PipebenchError as error:
        return row("failed", Side(), Side(reason=str(error)))
    words, given = arguments(search, figures), search.path if case.stdin else None
    request = SearchRequest(problem=asked)
    searcher = Searcher(planner=planner.label, regime=case.mode)
    limits = SearchLimits(timeout_s=terms.limit_s, repeat=0)

    def theirs() -> Side:
        return _theirs(ready, words, terms.limit_s, given)

    def ours() -> Side:
        before_s = time.process_time()
        if search.path is not None:
            problem(host, search, figures)
        reading_s = time.process_time() - before_s
        return _ours(host, planner, searcher, request, limits, reading_s)

    cold = ours()  # now its kernels are loaded, its code is in memory
    first = theirs()
    second = cold if cold.stopped or sum(cold.cpu_s) > LONG_S else ours()
    pairs = [(first, second)]
    if first.value is not None and second.value is not None and first.cpu_s[0] <= LONG_S:
        for number in range(1, terms.pairs):
            if number % 2:
                mine = ours()
                pairs.append((theirs(), mine))
            else:
                other = theirs()
                pairs.append((other, ours()))
    they = _of_all([pair[0] for pair in pairs])
    we = _of_all([pair[1] for pair in pairs])
    outcome = _outcome(ready.original, they, we)
    told = [a.cpu_s[0] / b.cpu_s[0] for a, b in pairs if a.cpu_s and b.cpu_s and b.cpu_s[0] > 0]
    clear = they.median_s is not None and they.median_s > LEAST_SHARE * ready.start_s
    ratio = statistics.median(told) if told and clear and outcome in ("equal", "differs") else None
    return row(outcome, they, we, ratio)


def _of_all(runs: list[Side]) -> Side:
    """One side of all pairs: the first that has no value, else the first, with all times."""
    worst = next((run for run in runs if run.value is None), runs[0])
    return Side(
        value=worst.value,
        no_plan=worst.no_plan,
        reason=worst.reason,
        stopped=worst.stopped,
        cpu_s=tuple(spent for run in runs for spent in run.cpu_s),
    )


def _theirs(ready: ReadyOriginal, words: tuple[str, ...], limit_s: float, given: Path | None) -> Side:
    done = ready.run(words, limit_s, given)
    spent = (max(0.0, done.cpu_s - ready.start_s),)
    if done.stopped:
        return Side(reason=f"no answer within {limit_s:g} s", stopped=True, cpu_s=spent)
    original = ready.original
    value = answer_of(original, done.output)
    if done.code == 0 and value is not None:
        return Side(value=value, cpu_s=spent)
    if original.no_plan and original.no_plan in done.output:
        return Side(no_plan=True, reason="no plan", cpu_s=spent)
    if done.code:
        return Side(reason=f"exit status {done.code}: {done.error}".removesuffix(": "))
    return Side(reason=f"it printed no value behind {original.answer!r}")


def _ours(
    host: Host,
    planner: Ready,
    searcher: Searcher,
    request: SearchRequest,
    limits: SearchLimits,
    reading_s: float,
) -> Side:
    done = timed_search(host, planner, searcher, request, limits)
    report, spent = done.report, (done.first.cpu_s + reading_s,)
    if report.status == "found" and report.result is not None and report.result.claimed_native is not None:
        stopped = report.result.termination == "limit"
        reason = "stopped at the time limit with the best so far" if stopped else ""
        return Side(value=report.result.claimed_native, reason=reason, stopped=stopped, cpu_s=spent)
    if report.status == "infeasible":
        return Side(no_plan=True, reason="no plan", cpu_s=spent)
    reason = report.reason or "it claims no value"
    return Side(reason=reason, stopped=report.status == "timeout", cpu_s=spent)


def _outcome(original: Original, theirs: Side, ours: Side) -> Outcome:
    if theirs.stopped or ours.stopped:
        return "no answer"
    if theirs.no_plan or ours.no_plan:
        both = (theirs.no_plan or theirs.value is not None) and (ours.no_plan or ours.value is not None)
        return ("equal" if theirs.no_plan == ours.no_plan else "differs") if both else "failed"
    if theirs.value is None or ours.value is None:
        return "failed"
    return "equal" if agree(theirs.value, ours.value, original.digits) else "differs"


def agree(theirs: float, ours: float, digits: int) -> bool:
    """Whether two values are the same to that many significant digits, one unit of the last one apart."""
    return abs(theirs - ours) <= max(abs(theirs), abs(ours)) * 10.0 ** (1 - digits)
