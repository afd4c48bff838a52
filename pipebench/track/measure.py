"""Measure a night: every subject once for the exact columns, then rounds for the ratios until the budget ends."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from pipebench.bench.sweeps.agenda import Agenda
from pipebench.bench.sweeps.sweep import Watcher as TrialWatcher
from pipebench.bench.sweeps.sweep import Where, run_agenda
from pipebench.bench.trials.comparison import Request, running_order, trials
from pipebench.bench.trials.trial import Outcome
from pipebench.domain.plan import Plan
from pipebench.hooks.manager import Host
from pipebench.track.night import Measured
from pipebench.track.paired import CONTROL_ROUNDS, PAIRS, Gathered
from pipebench.track.tracked import Tracked, subject_of

RERUN_SHARE = 0.2
"""Of the budget, kept for confirming reruns."""
CONTROL_S = 0.002
"""The A/A pair is the quickest search that takes at least this long: shorter ones are mostly overhead."""


class Watcher(TrialWatcher, Protocol):
    """Who is told how a night goes."""

    def phase(self, what: str) -> None:
        """A new part of the night begins."""


class Measurement:
    """One night. Budget in seconds, counted from when this is made; every search is one process."""

    def __init__(self, host: Host, request: Request, budget_s: float, watcher: Watcher | None = None) -> None:
        self._host, self._watcher, self._seed = host, watcher, request.seed
        self._began = time.monotonic()
        self._budget_s = budget_s
        listed = trials(replace(request, rounds=1, repeat=PAIRS))
        self.tracked = [Tracked(trial, subject_of(trial)) for trial in listed]
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

    def measured(self) -> tuple[Measured, ...]:
        """What was found of each subject that ran."""
        return tuple(each.measured() for each in self.tracked if each.outcome is not None)

    def first_pass(self) -> None:
        """Every subject once, as long as the budget lasts; then the one of the A/A pair is chosen."""
        self._phase("exact columns")
        late = []
        for position in self._order:
            tracked = self.tracked[position]
            if self.spent_s >= self._budget_s:
                late.append(tracked.subject.label)
                continue
            tracked.outcome = self._run(tracked, tracked.own)
        if late:
            self.notices.append(f"the budget ended before these ran: {'; '.join(sorted(late))}")
        timed = [each for each in self.tracked if each.timed]
        control = min(timed, key=lambda each: (each.search_s < CONTROL_S, each.search_s), default=None)
        if control is not None:
            control.own.fewest = CONTROL_ROUNDS
            control.twin = Gathered(CONTROL_ROUNDS)

    def rounds(self) -> None:
        """Rounds of all subjects whose ratio is not known well enough, each in another order."""
        self._phase("paired ratios")
        chosen = [(each, into) for each in self.tracked if each.timed for into in (each.own, each.twin) if into]
        self._rounds(chosen, (1 - RERUN_SHARE) * self._budget_s)

    def confirm(self, suspicious: Callable[[Measured], bool]) -> None:
        """Measure the suspicious subjects again, in new processes, to the end of the budget."""
        chosen = [each for each in self.tracked if each.timed and suspicious(each.measured())]
        if chosen:
            self._phase("confirming reruns")
        for tracked in chosen:
            tracked.again = Gathered()
        self._rounds([(each, each.again) for each in chosen if each.again], self._budget_s)

    def _rounds(self, chosen: Sequence[tuple[Tracked, Gathered]], until_s: float) -> None:
        """Each round in a shuffled order, the one after it backwards: A-B-B-A."""
        draw = random.Random(self._seed)
        order = list(chosen)
        number = 0
        while waiting := [place for place, (_, into) in enumerate(chosen) if not into.done]:
            if number % 2 == 0:
                draw.shuffle(order)
            else:
                order.reverse()
            number += 1
            for tracked, into in order:
                if not any(chosen[place][1] is into for place in waiting):
                    continue
                if self.spent_s + tracked.cost_s > until_s:
                    return
                again = self._run(tracked, into)
                tracked.compare(again)

    def _run(self, tracked: Tracked, into: Gathered) -> Outcome:
        agenda = Agenda([tracked.trial], [0])
        began = time.monotonic()
        outcome = next(iter(run_agenda(self._host, agenda, Where(), self._watcher))).outcome
        tracked.cost_s = time.monotonic() - began
        into.add(outcome.samples, alone=not outcome.row.parallel)
        return outcome

    def _phase(self, what: str) -> None:
        if self._watcher is not None:
            self._watcher.phase(what)
