"""The run plan of a comparison: its trials, those that a store holds, and the order of the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from functools import cache

from msgspec.structs import replace

from pipebench.bench.searches.isolation.hidden import hide_from_children
from pipebench.bench.store.folder import Store
from pipebench.bench.store.keys import TrialInputs, trial_inputs, trial_key
from pipebench.bench.store.objects import PROBLEM, references
from pipebench.bench.store.stored_rows import StoredRow, script_text, stored_row
from pipebench.bench.store.sweep_parts import SweepPart
from pipebench.bench.sweeps.shards import Shard, shards_of
from pipebench.bench.trials.comparison import running_order
from pipebench.bench.trials.trial import Outcome, Trial
from pipebench.documents.units import quantity
from pipebench.domain.row import FAILED, Row
from pipebench.hooks.manager import Host


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """The outcome of the trial at a position of the list; cached: it was in the store."""

    position: int
    outcome: Outcome
    cached: bool = False


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All trials in the order of the table, those that a store holds, and the rest in the order to run it.

    again: trials of the rest whose row in the store will be replaced.
    scripts: the texts of planners that are files.
    places: of a shard's trials in the list of the whole sweep; empty where it is whole.
    """

    trials: Sequence[Trial]
    to_run: Sequence[int]
    cached: Sequence[FinishedTrial] = ()
    inputs: Sequence[TrialInputs] = ()
    again: frozenset[int] = frozenset()
    scripts: Mapping[int, bytes | None] = field(default_factory=dict)
    store: Store | None = None
    host: Host | None = None
    places: Sequence[int] = ()

    @property
    def cached_failures(self) -> int:
        """How many rows of the store are failures that are not run again."""
        return sum(finished.outcome.row.status in FAILED for finished in self.cached)

    @property
    def beside(self) -> int:
        """How many rows of the store ran beside other trials: their times compare with nothing."""
        return sum(finished.outcome.row.parallel for finished in self.cached)

    def keep(self, position: int, outcome: Outcome) -> Outcome:
        """The outcome with its key, on disk where there is a store. Raises PipebenchError when it cannot be."""
        if self.store is None or self.host is None:
            return outcome
        trial = self.trials[position]
        if trial_key(inputs_of(self.host, trial)) != trial_key(self.inputs[position]):
            return _with_change_notice(outcome)
        place = self.places[position] if self.places else position
        stored = stored_row(trial, self.inputs[position], outcome.row, place)
        text, again = self.scripts.get(position), position in self.again
        self.store.append(stored, outcome.problem, outcome.plan, outcome.schedule, script=text, replace=again)
        return replace_fields(outcome, row=stored.row)


def inputs_of(host: Host, trial: Trial) -> TrialInputs:
    """What the result of a trial depends on. Raises PipebenchError when a component's source cannot be found."""
    problem_id = trial.workload.problem(trial.regime).problem_id
    return trial_inputs(host, trial, problem_id, trial.planner.source or None)


def make_run_plan(
    host: Host,
    trials: Sequence[Trial],
    store: Store | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    shard: Shard | None = None,
) -> RunPlan:
    """Split the trials into those that the store holds and those to run.

    A stored row stands for its trial unless `fresh`; a stored failure unless `retry_failed`. A row that ran beside
    other trials also stands. It keeps its tag, so that its search times are never compared.
    shard: only its trials, in the order that they have in the whole sweep; the store is told which shard it is.
    A row whose plan, schedule or script is damaged or missing is run again, too; the store has a notice.
    Raises PipebenchError where the store is another shard's.
    """
    order = running_order(trials, trials[0].seed) if trials else []
    if store is None:
        return RunPlan(trials, order)
    hide_from_children(store.content)  # a planner could give the plan that another one has found
    inputs = [inputs_of(host, trial) for trial in trials]
    places: Sequence[int] = ()
    if shard is not None:
        numbers = shards_of(trials, shard.count)
        keys = [trial_key(inputs[position]) for position in order]
        part = SweepPart.of(keys, [numbers[position] for position in order], shard.number, shard.count)
        store.enter_shard(part)
        places = [place for place, number in enumerate(numbers) if number == shard.number]
        moved = {place: position for position, place in enumerate(places)}
        order = [moved[place] for place in order if place in moved]
        trials, inputs = [trials[place] for place in places], [inputs[place] for place in places]

    def stands(stored: StoredRow) -> bool:
        return not fresh and not (retry_failed and stored.row.status in FAILED)

    found = {position: store.find(trial_key(each)) for position, each in enumerate(inputs)}
    kept = {position: stored for position, stored in found.items() if stored is not None and stands(stored)}
    kept = _with_whole_objects(store, kept, trials)
    cached = [_relabel_row(position, trials[position], stored.row) for position, stored in kept.items()]
    again = frozenset(
        position for position, stored in found.items() if stored is not None and position not in kept
    )
    to_run = [position for position in order if position not in kept]
    scripts = {position: script_text(trials[position]) for position in to_run}
    return RunPlan(trials, to_run, cached, inputs, again, scripts, store, host, places)


def _with_whole_objects(
    store: Store, kept: Mapping[int, StoredRow], trials: Sequence[Trial]
) -> dict[int, StoredRow]:
    """The rows whose objects are whole. Their problems are at hand: damaged ones are written anew."""
    problems = [trials[position].workload.problem(trials[position].regime) for position in kept]
    store.restore({problem.problem_id: problem for problem in problems}.values())
    damage_of = cache(store.damage)
    damaged: dict[int, str] = {}
    for position, stored in kept.items():
        for kind, identity in references(stored):
            if kind != PROBLEM and (damage := damage_of(kind, identity)) is not None:
                damaged[position] = damage
    if damaged:
        first, count = next(iter(damaged.values())), quantity(len(damaged), "trial")
        store.notices.append(f"{first}; {count} with a damaged or missing plan, schedule or script run again")
    return {position: stored for position, stored in kept.items() if position not in damaged}


def refresh(plan: RunPlan) -> RunPlan:
    """The plan after other runs have stored rows: what the store holds by now is not run again."""
    if plan.store is None:
        return plan
    found = {
        position: stored
        for position in plan.to_run
        if position not in plan.again and (stored := plan.store.find(trial_key(plan.inputs[position])))
    }
    if not found:
        return plan
    cached = [_relabel_row(position, plan.trials[position], stored.row) for position, stored in found.items()]
    to_run = [position for position in plan.to_run if position not in found]
    return replace_fields(plan, to_run=to_run, cached=[*plan.cached, *cached])


def _relabel_row(position: int, trial: Trial, row: Row) -> FinishedTrial:
    """The cached row under the planner text that the user typed: options at their defaults make the same key."""
    named = replace(row, planner=trial.planner.label)
    return FinishedTrial(position, Outcome(named, trial.workload.problem(trial.regime)), cached=True)


def _with_change_notice(outcome: Outcome) -> Outcome:
    notice = "its source changed while it ran: the row is not stored"
    return replace_fields(outcome, row=replace(outcome.row, notices=(*outcome.row.notices, notice)))
