"""Measure a night: every subject once for the exact columns, then rounds for the ratios until the budget ends."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from msgspec import UNSET

from pipebench.bench.searches.isolated import SearchStopped
from pipebench.bench.sweeps.run_plan import RunPlan
from pipebench.bench.sweeps.sweep import TrialWatcher, Where, run_trials
from pipebench.bench.trials.comparison import Request, running_order, trials
from pipebench.bench.trials.trial import Outcome, Trial
from pipebench.domain.plan import Plan
from pipebench.domain.row import FAILED
from pipebench.hooks.manager import Host
from pipebench.track.measurement.ratios import CONTROL_ROUNDS, PAIRS, SubjectRounds
from pipebench.track.nights.conditions import fingerprint
from pipebench.track.nights.exact import changed_columns, exact_columns
from pipebench.track.nights.night import Night, SubjectNight, TrackedSubject

INFORMATION = ("search_cpu_s", "search_wall_s", "search_cold_s", "search_peak_bytes")


@dataclass(slots=True)
class SubjectRun:
    """own, twin, again: the rounds of the subject, of its A/A twin and of its confirming rerun.

    cost_s: wall seconds of its last run, process and scoring included. unsteady: exact columns that two runs of
    this night disagree on.
    """

    trial: Trial
    subject: TrackedSubject
    outcome: Outcome | None = None
    own: SubjectRounds = field(default_factory=SubjectRounds)
    twin: SubjectRounds | None = None
    again: SubjectRounds | None = None
    unsteady: set[str] = field(default_factory=set)
    cost_s: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether its searches are short enough to be timed warm, also where the first pairs were of no use."""
        return self.own.processes > 0

    @property
    def search_s(self) -> float:
        """CPU seconds of its search."""
        return (self.outcome.row.search_cpu_s if self.outcome else None) or 0.0

    def compare(self, again: Outcome) -> None:
        """Another run of this night: what differs is not judged."""
        assert self.outcome is not None
        both = exact_columns(self.outcome.row), exact_columns(again.row)
        self.unsteady.update(changed_columns(*both))

    def subject_night(self) -> SubjectNight:
        """What goes into the history."""
        assert self.outcome is not None
        row = self.outcome.row
        figures = {name: getattr(row, name) for name in INFORMATION}
        return SubjectNight(
            subject=self.subject,
            fingerprint=fingerprint(self.trial, row),
            exact=exact_columns(row),
            unsteady=tuple(sorted(self.unsteady)),
            paired=self.own.paired_ratios(),
            again=self.again.paired_ratios() if self.again else None,
            twin=self.twin.paired_ratios() if self.twin else None,
            information={name: float(value) for name, value in figures.items() if value is not None},
            reason=row.reason if row.status in FAILED else UNSET,
        )


def subject_of(trial: Trial) -> TrackedSubject:
    """The name under which a trial goes through the nights."""
    workload = trial.workload
    return TrackedSubject(
        planner=trial.planner.label,
        workload=workload.name or workload.model,
        cluster=workload.cluster.name,
        devices=workload.cluster.accelerators,
        mini_batch=workload.mini_batch,
        regime=trial.regime,
        scheduler=trial.scheduler or "",
    )


RERUN_SHARE = 0.2
"""Of the budget, kept for confirming reruns."""
CONTROL_S = 0.002
"""The A/A pair is the quickest search that takes at least this long: shorter ones are mostly overhead."""


class NightWatcher(TrialWatcher, Protocol):
    """Who is told how a night goes."""

    def phase(self, what: str) -> None:
        """A new part of the night begins."""

    def not_added(self, night: Night) -> None:
        """It was measured, and could not be written."""


class Measurement:
    """One night. Budget in seconds, counted from when this is made; every search is one process.

    A search that would go on beyond the budget is stopped, and says nothing of its planner.
    """

    def __init__(self, host: Host, request: Request, budget_s: float, watcher: NightWatcher | None = None) -> None:
        self._host, self._watcher, self._seed = host, watcher, request.seed
        self._began = time.monotonic()
        self._budget_s = budget_s
        listed = trials(replace(request, rounds=1, repeat=PAIRS, own_regimes=request.own_regimes or "first"))
        self.tracked = [SubjectRun(trial, subject_of(trial)) for trial in listed]
        self._order = running_order(listed, request.seed)
        self.notices: list[str] = []

    @property
    def spent_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def plans(self) -> list[Plan]:
        """The plans that were found."""
        return [each.outcome.plan for each in self.tracked if each.outcome and each.outcome.plan]

    def subject_nights(self) -> tuple[SubjectNight, ...]:
        """What was found of each subject that ran."""
        return tuple(each.subject_night() for each in self.tracked if each.outcome is not None)

    def first_pass(self) -> None:
        """Every subject once, as long as the budget lasts; then the one of the A/A pair is chosen."""
        self._phase("exact columns")
        late, stopped = [], []
        for position in self._order:
            tracked = self.tracked[position]
            if self.spent_s >= self._budget_s:
                late.append(tracked.subject.label)
                continue
            try:
                tracked.outcome = self._run(tracked, tracked.own)
            except SearchStopped:
                stopped.append(tracked.subject.label)
        for labels, what in (
            (late, "before these ran"),
            (stopped, "while these searched, which counts as not run"),
        ):
            if labels:
                self.notices.append(f"the budget ended {what}: {'; '.join(sorted(labels))}")
        timed = [each for each in self.tracked if each.is_short]
        control = min(timed, key=lambda each: (each.search_s < CONTROL_S, each.search_s), default=None)
        if control is not None:
            control.own.fewest = CONTROL_ROUNDS
            control.twin = SubjectRounds(CONTROL_ROUNDS)

    def rounds(self) -> None:
        """Rounds of all subjects whose ratio is not known well enough, each in another order."""
        self._phase("paired ratios")
        chosen = [(each, into) for each in self.tracked if each.is_short for into in (each.own, each.twin) if into]
        self._rounds(chosen, (1 - RERUN_SHARE) * self._budget_s)

    def confirm(self, suspicious: Callable[[SubjectNight], bool]) -> None:
        """Measure the suspicious subjects again, in new processes, to the end of the budget."""
        chosen = [each for each in self.tracked if each.is_short and suspicious(each.subject_night())]
        if chosen:
            self._phase("confirming reruns")
        for tracked in chosen:
            tracked.again = SubjectRounds()
        self._rounds([(each, each.again) for each in chosen if each.again], self._budget_s)

    def _rounds(self, chosen: Sequence[tuple[SubjectRun, SubjectRounds]], until_s: float) -> None:
        """Each round in a shuffled order, the one after it backwards: A-B-B-A."""
        draw = random.Random(self._seed)
        order = list(chosen)
        number = 0
        while not all(into.is_complete for _, into in order):
            if number % 2 == 0:
                draw.shuffle(order)
            else:
                order.reverse()
            number += 1
            for tracked, into in order:
                if into.is_complete:
                    continue
                if self.spent_s + tracked.cost_s > until_s:
                    return
                try:
                    again = self._run(tracked, into)
                except SearchStopped:
                    self.notices.append(f"the budget ended while this searched again: {tracked.subject.label}")
                    return
                tracked.compare(again)

    def _run(self, tracked: SubjectRun, into: SubjectRounds) -> Outcome:
        trial = replace(tracked.trial, stops_at=self._began + self._budget_s)
        agenda = RunPlan([trial], [0])
        began = time.monotonic()
        outcome = next(iter(run_trials(self._host, agenda, Where(), self._watcher))).outcome
        tracked.cost_s = time.monotonic() - began
        into.add(outcome.samples, alone=not outcome.row.parallel)
        return outcome

    def _phase(self, what: str) -> None:
        if self._watcher is not None:
            self._watcher.phase(what)
