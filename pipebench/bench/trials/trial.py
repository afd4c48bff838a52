"""One trial: a search in a child process, then check and score in this one. It always ends in a row."""

import math
import re
import statistics
import sys
import time
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as replace_struct

from pipebench.algorithms.coarse import COARSER, CoarseProblem, coarsen
from pipebench.algorithms.micro_batches import ONE_SIZE, proportional_notices
from pipebench.bench.components import Ready
from pipebench.bench.machine.environment import with_load
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.machine.time_limits import LimitReached
from pipebench.bench.ordering.choice import OrderedPlan, OrderFailure, flush_notes, order_plan
from pipebench.bench.problems.workload import Workload
from pipebench.bench.row_bounds import ClassBounds, ProvenBounds
from pipebench.bench.score import (
    impossible,
    judge,
    plan_fields,
    splits_operators,
    time_fields,
    verdict_fields,
)
from pipebench.bench.searches.isolated import Heard, SearchLimits, TimedSearch, smallest_fitting, timed_search
from pipebench.bench.searches.request import (
    TOY_S,
    Fitting,
    Sample,
    Searcher,
    SearchReport,
    SearchRequest,
    Start,
)
from pipebench.bench.searches.search import NOTHING
from pipebench.bench.searches.smallest_memory import rounded_up, with_memory
from pipebench.bench.services import HostServices
from pipebench.bench.trials.expansion import fitting_in_operators, in_operators
from pipebench.defaults import SIMULATOR
from pipebench.documents.units import hardware, readable_bytes
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.row import Row, Status
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.value import digest
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host

COLD = "search time is of the first search: it ran once"
UNWITNESSED = "search times are unwitnessed: this system does not say what all processes of a search used"


def search_fields(done: TimedSearch, planned_for: RegimeMode | None) -> dict[str, Any]:
    """The columns of a search: those of every row, and those of a search that found a plan.

    planned_for: the planner's own regime where its plan is adapted to another one. What it claims and proves says
    nothing there.
    """
    report = done.report
    fields: dict[str, Any] = {"output": done.output, "search_peak_bytes": done.peak_bytes}
    if report.status != "found":
        return {**fields, "claimed_s": report.claimed_s}
    result = report.result
    assert result is not None
    said = [notice for notice in result.notices if notice != ONE_SIZE or not planned_for] + [*done.notices]
    said += [] if done.samples or not done.clocked else [COLD]
    said += [] if sys.platform == "linux" else [UNWITNESSED]
    fields |= {**(_times(done) if done.clocked else {}), "counters": report.counters, "notices": tuple(said)}
    if planned_for:
        return {**fields, "termination": "heuristic"}
    return {
        **fields,
        "claimed_s": result.claimed_s,
        "claimed_native": result.claimed_native,
        "claimed_unit": result.claimed_unit,
        "class_bound_s": result.lower_bound_s,
        "class_bound_scope": result.bound_scope,
        "termination": result.termination,
    }


def _times(done: TimedSearch) -> dict[str, Any]:
    samples = done.samples or (done.first,)
    fields = {
        "search_cpu_s": statistics.median(sample.cpu_s for sample in samples),
        "search_wall_s": statistics.median(sample.wall_s for sample in samples),
        "search_cold_s": done.prepare_s + done.first.wall_s,
    }
    if not done.samples:
        return fields
    return {
        **fields,
        "search_samples": tuple((sample.cpu_s, sample.wall_s) for sample in samples),
        "search_ratio": _ratios(samples),
    }


def _ratios(samples: tuple[Sample, ...]) -> dict[str, float]:
    """For each flavour the median of search CPU over that of the calibration right before it.

    Neighbours share the disturbance of the machine.
    """
    return {
        flavour: statistics.median(
            sample.cpu_s / beside for sample in samples if (beside := sample.calibration_cpu_s[flavour]) > 0
        )
        for flavour in samples[0].calibration_cpu_s
        if any(sample.calibration_cpu_s[flavour] > 0 for sample in samples)
    }


_BYTES = re.compile(r"(\d{1,18}) bytes")
GAVE_UP = 0.5
"""Of the time limit: a planner that says before that its time is out looks at another clock."""


def failure_reason(
    done: TimedSearch, problem: Problem, least_bytes: int | None, proven_bytes: int | None, timeout_s: float
) -> str:
    """One line: why there is no plan, and, where memory is too small, what memory would do.

    Memory is too small where the planner has a plan with more (least_bytes), or where no plan fits (proven_bytes).
    A planner that says itself how many bytes it needs is not told so again in other digits.
    """
    report = done.report
    if report.status == "timeout":
        if 0 < done.first.wall_s < GAVE_UP * timeout_s:
            return f"it gave up after {done.first.wall_s:.2g} s of {timeout_s:g} s: {report.reason}"
        return f"no plan within {timeout_s:g} s"
    if report.status != "infeasible":
        return report.reason
    memory_bytes = problem.cluster.memory_bytes
    if not least_bytes and (proven_bytes or 0) <= memory_bytes:
        return report.reason
    has = f"{report.reason}; devices have {readable_bytes(memory_bytes)}"
    named = {rounded_up(int(amount)) for amount in _BYTES.findall(report.reason)}
    finds = ""
    if least_bytes and least_bytes not in named:
        finds = f", on devices of {readable_bytes(least_bytes)} it has a plan"
    return f"{has}{finds}{proven_words(proven_bytes or 0, memory_bytes)}"


def proven_words(needed_bytes: int, memory_bytes: int) -> str:
    """What any plan needs; where it reads as the memory does, by how much it is above that, if it is."""
    if not needed_bytes or readable_bytes(needed_bytes) != readable_bytes(memory_bytes):
        return f", any plan needs {readable_bytes(needed_bytes)}" if needed_bytes else ""
    above = needed_bytes - memory_bytes
    return f", any plan needs {readable_bytes(above)} more" if above > 0 else ""


@dataclass(frozen=True, slots=True)
class Trial:
    """What to run.

    regime: the regime in which the plan is scored.
    scheduler: None for the plan's own schedule, else the best that any scheduler makes.
    offered: the schedulers to choose from; empty for all that the suite tries.
    timeout_s: limit of the search; the whole process group is killed when it passes.
    memory_bytes: limit of the search; allocations beyond it fail (0: no limit).
    parallel: whether other trials run at the same time.
    toy_s: as of Searcher.
    coarsen: the planner sees at most so many blocks of operators; its plan is scored in operators (0: as it is).
    trusted: import paths out of files that executors may import.
    yardstick: the suite added it, so that the others stand beside something known; it counts in no standing.
    start: what the planner begins with, and what its plan must be. stops_at: as of SearchLimits.
    heard: told in words how far the search is.
    """

    workload: Workload
    regime: RegimeMode
    planner: Ready
    scheduler: str | None = None
    offered: tuple[str, ...] = ()
    executors: tuple[str, ...] = (SIMULATOR,)
    repeat: int = 1
    timeout_s: float = 300.0
    memory_bytes: int = SEARCH_MEMORY_BYTES
    seed: int = 0
    repetition: int = 0
    parallel: bool = False
    toy_s: float = TOY_S
    coarsen: int = 0
    trusted: frozenset[str] = frozenset()
    yardstick: bool = False
    start: Start = NOTHING
    stops_at: float = math.inf
    heard: Heard | None = field(default=None, compare=False)

    @property
    def planning(self) -> RegimeMode:
        """The regime in which the planner is asked: that of the trial where it plans for it, else its own."""
        assert isinstance(self.planner.component, Planner)
        regimes = self.planner.component.capabilities.regimes
        return self.regime if self.regime in regimes else regimes[0]

    def searcher(self, mode: RegimeMode) -> Searcher:
        """What is known of its search in that regime before the problem."""
        named = self.scheduler if mode == self.regime else None
        return Searcher(planner=self.planner.label, scheduler=named, regime=mode, seed=self.seed, toy_s=self.toy_s)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row, and the plan, schedule and traces behind it where there are any.

    compile_s: seconds of the search spent in the compiler.
    samples: the warm searches behind the row's medians, each with its calibrations.
    """

    row: Row
    problem: Problem
    plan: Plan | None = None
    schedule: Schedule | None = None
    traces: tuple[Trace, ...] = field(default=())
    compile_s: float = 0.0
    samples: tuple[Sample, ...] = ()


class Searches:
    """What the last searches found, for trials that ask the same of the same planner.

    A planner that plans for one regime only is asked once; its plan is scored in both.
    """

    KEPT = 64

    def __init__(self) -> None:
        self._known: dict[Hashable, TimedSearch] = {}
        self._coarse: dict[tuple[str, int], CoarseProblem] = {}
        self.proven_bounds, self.class_bounds = ProvenBounds(), ClassBounds()

    def coarse(self, problem: Problem, blocks: int) -> CoarseProblem:
        """The problem in blocks, made where the last one was another."""
        key = problem.problem_id, blocks
        if key not in self._coarse:
            self._coarse = {key: coarsen(problem, blocks)}
        return self._coarse[key]

    def find(self, host: Host, trial: Trial, searcher: Searcher, request: SearchRequest) -> TimedSearch:
        """The search of a trial, run where it has not been."""
        limits = SearchLimits(
            timeout_s=trial.timeout_s,
            memory_bytes=trial.memory_bytes,
            repeat=trial.repeat,
            stops_at=trial.stops_at,
        )
        asked = id(trial.planner), searcher.scheduler, request.problem.problem_id, trial.repetition, trial.seed
        key = (*asked, limits, digest(request.start))
        if key not in self._known:
            self._known[key] = timed_search(host, trial.planner, searcher, request, limits, trial.heard)
            while len(self._known) > self.KEPT:
                del self._known[next(iter(self._known))]
        return self._known[key]


def run_trial(host: Host, trial: Trial, searches: Searches | None = None) -> Outcome:
    """Run one trial to its row. searches: of trials that ran before it.

    A planner that does not plan for the regime of the trial is asked in its own, and its plan is adapted. So is a
    file or a program that answers `unsupported`: it cannot declare its regimes. Raises SearchStopped.
    """
    started_s = time.monotonic()
    outcome = _outcome_of(host, trial, Searches() if searches is None else searches)
    elapsed_s = time.monotonic() - started_s
    return replace(outcome, row=replace_struct(outcome.row, elapsed_s=elapsed_s))


def _outcome_of(host: Host, trial: Trial, searches: Searches) -> Outcome:
    component = trial.planner.component
    assert isinstance(component, Planner)
    scoring = trial.workload.problem(trial.regime)
    bounds = searches.proven_bounds.fields(scoring)

    def ask(mode: RegimeMode) -> _Inquiry:
        return _ask(host, trial, searches, mode, bounds["bound_memory_bytes"] or 0)

    planning = trial.planning
    asked = ask(planning)
    if asked.done.report.status == "unsupported" and not component.load and not trial.planner.here:
        other: RegimeMode = "async" if planning == "sync" else "sync"
        again = ask(other)
        if again.done.report.result is not None:
            planning, asked = other, again
    adapted, done = planning != trial.regime, asked.done
    common = {**_identity(trial, scoring, adapted), **bounds, **search_fields(done, planning if adapted else None)}
    if done.report.result is None:
        return _failed_outcome(trial, scoring, done, common)
    try:
        ordered = order_plan(
            host,
            scoring,
            component,
            done.report.result,
            trial.scheduler,
            trial.offered,
            adapted=adapted,
            seed=trial.seed,
        )
    except LimitReached as error:
        return Outcome(Row(**common, status="timeout", reason=str(error)), scoring, done.report.result.plan)
    if isinstance(ordered, OrderFailure):
        common["scheduler"] = ordered.scheduler
        if ordered.verdict is not None:
            common |= verdict_fields(ordered.verdict)
        if ordered.status == "timeout":  # of schedulers; the search ended in time
            return Outcome(
                Row(**common, status="timeout", reason=ordered.reason), scoring, done.report.result.plan
            )
        fitting = None
        if ordered.status == "infeasible" and not adapted:
            fitting = _smallest(host, trial, asked)
        report = SearchReport(status=ordered.status, reason=ordered.reason, smallest=fitting)
        return _failed_outcome(trial, scoring, replace(done, report=report), common)
    until_s = time.monotonic() + trial.timeout_s
    services = HostServices(host, seed=trial.seed, deadline_s=until_s, trusted=trial.trusted)
    return _scored_outcome(services, trial, scoring, done, ordered, common, searches)


@dataclass(frozen=True, slots=True)
class _Inquiry:
    """What a planner was asked, in blocks where the trial asks for them, and what came of it, in operators."""

    searcher: Searcher
    request: SearchRequest
    done: TimedSearch
    coarse: CoarseProblem | None = None


def _ask(host: Host, trial: Trial, searches: Searches, mode: RegimeMode, bound_memory_bytes: int) -> _Inquiry:
    """Ask the planner for a plan in that regime.

    On blocks: on half as many as long as it finds them too many.
    """
    searcher = trial.searcher(mode)
    request = SearchRequest(
        problem=trial.workload.problem(mode), bound_memory_bytes=bound_memory_bytes, start=trial.start
    )
    if not trial.coarsen:
        return _Inquiry(searcher, request, searches.find(host, trial, searcher, request))
    blocks, refused = trial.coarsen, ""
    while True:
        coarse = searches.coarse(request.problem, blocks)
        in_blocks = replace_struct(request, problem=coarse.problem)
        done = searches.find(host, trial, searcher, in_blocks)
        too_many = done.report.status == "unsupported" and COARSER in done.report.reason
        if not too_many or blocks == 1:
            return _Inquiry(searcher, in_blocks, in_operators(done, request.problem, coarse, refused), coarse)
        refused = refused or f"{blocks} blocks are too many for it: {done.report.reason.split(' (' + COARSER)[0]}"
        blocks //= 2


def _smallest(host: Host, trial: Trial, asked: _Inquiry) -> Fitting | None:
    """The least memory with which the planner has a plan that a scheduler can order, in the time that is left."""
    left_s = trial.timeout_s - asked.done.wall_s
    limits = SearchLimits(timeout_s=left_s, memory_bytes=trial.memory_bytes, stops_at=trial.stops_at)
    fitting = smallest_fitting(host, trial.planner, asked.searcher, asked.request, limits)
    return fitting if fitting is None or asked.coarse is None else fitting_in_operators(fitting, asked.coarse)


def _identity(trial: Trial, scoring: Problem, adapted: bool) -> dict[str, Any]:
    component, provider = trial.planner.component, trial.planner.provider
    assert isinstance(component, Planner)
    return {
        "model": trial.workload.model,
        "workload": trial.workload.name,
        "profile": scoring.profile.name,
        "cluster": scoring.cluster.name,
        "hardware": hardware(scoring.cluster),
        "devices": scoring.cluster.accelerators,
        "device_memory_bytes": scoring.cluster.memory_bytes,
        "mini_batch": scoring.mini_batch,
        "regime": trial.regime,
        "problem_id": scoring.problem_id,
        "workload_id": scoring.workload_id,
        "planner": trial.planner.label,
        "scheduler": trial.scheduler or "",
        "fidelity": component.fidelity,
        "distribution": provider.distribution,
        "version": provider.version,
        "named_scheduler": trial.scheduler or "",
        "adapted": adapted,
        "yardstick": trial.yardstick,
        "coarsen": trial.coarsen,
        "repetition": trial.repetition,
        "parallel": trial.parallel,
        "environment": with_load(trial.seed),
    }


def _failed_outcome(trial: Trial, problem: Problem, done: TimedSearch, common: dict[str, Any]) -> Outcome:
    report = done.report
    assert report.status != "found"
    fitting, least = report.smallest, None
    if fitting is not None:
        roomier = with_memory(problem, fitting.memory_bytes)
        valid = judge(roomier, fitting.plan, fitting.schedule).status == "valid"
        least = fitting.memory_bytes if valid else None
    reason = failure_reason(done, problem, least, common["bound_memory_bytes"], trial.timeout_s)
    row = Row(**common, status=report.status, reason=reason, smallest_memory_bytes=least)
    return Outcome(row, problem, compile_s=done.compile_s)


def _scored_outcome(
    services: HostServices,
    trial: Trial,
    problem: Problem,
    done: TimedSearch,
    ordered: OrderedPlan,
    common: dict[str, Any],
    searches: Searches,
) -> Outcome:
    plan, schedule, verdict = ordered.plan, ordered.schedule, ordered.verdict
    split = splits_operators(plan)
    said = *ordered.notes, *proportional_notices(problem, plan), *flush_notes(problem, ordered, trial.scheduler)
    unproven = searches.proven_bounds.notices(problem, split)
    common = {**common, **ordered.fields(), "notices": (*common["notices"], *said, *unproven)}
    if split:
        common = {**common, **searches.proven_bounds.fields(problem, split=True)}
    common = {**common, **verdict_fields(verdict)}
    if verdict.status == "invalid":
        reason = verdict.witness.message if verdict.witness else verdict.reason
        lacks_memory = verdict.witness is not None and verdict.witness.rule == "memory"
        # Nobody promised that a plan made for one regime fits in the other.
        status: Status = "infeasible" if common["adapted"] and lacks_memory else "invalid_plan"
        row = Row(**common, status=status, reason=reason)
        return Outcome(row, problem, plan, schedule, compile_s=done.compile_s)
    fields, traces, troubles = time_fields(services, problem, plan, schedule, trial.executors, common)
    common["notices"] = (*common["notices"], *troubles)
    common |= searches.class_bounds.fields(problem, plan, schedule, common)
    reason = impossible({**common, **fields})
    row = Row(
        **common,
        **fields,
        **plan_fields(problem, plan, schedule),
        status="invalid_plan" if reason else "ok",
        reason=reason,
    )
    return Outcome(row, problem, plan, schedule, tuple(traces), done.compile_s, done.samples)
