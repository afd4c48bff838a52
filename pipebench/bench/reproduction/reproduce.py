"""An artefact's cells run as trials: what a store holds is not run again, what cannot be run is a row too."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as replace_fields

from pipebench.bench.components import Ready, ready_planner, ready_scheduler
from pipebench.bench.problems.workload import Workload
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bench.store.folder import Store
from pipebench.bench.store.keys import trial_key
from pipebench.bench.sweeps.run_plan import FinishedTrial, RunPlan, make_run_plan, refresh
from pipebench.bench.sweeps.sweep import TrialWatcher, Where, run_trials
from pipebench.bench.trials.comparison import home_regime
from pipebench.bench.trials.trial import Trial
from pipebench.costs.shapes.rescale import scale_profile
from pipebench.documents.units import hardware
from pipebench.domain.artefact import Cell, Result
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import RegimeMode
from pipebench.domain.profile import Profile
from pipebench.domain.row import Row
from pipebench.formats.profiles.parts import only
from pipebench.formats.profiles.pipedream import join_layers
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference


@dataclass(frozen=True, slots=True)
class ReproductionPlan:
    """Cells, the trials of those that can be run, and rows of those that cannot.

    places: the position in `cells` of each trial of the run plan.
    """

    cells: Sequence[Cell]
    agenda: RunPlan
    places: Sequence[int]
    refused: dict[int, Row]

    @property
    def expected_s(self) -> float:
        """About how long what is left takes."""
        return sum(self.cells[self.places[position]].expected_s for position in self.agenda.to_run)

    def up_to_date(self) -> "ReproductionPlan":
        """The same after other artefacts have run: the cells that they share are in the store by now."""
        return replace(self, agenda=refresh(self.agenda))

    def results(self, finished: Sequence[FinishedTrial]) -> list[Result]:
        """What is known, in the order of the cells."""
        rows = dict(self.refused)
        rows |= {self.places[each.position]: each.outcome.row for each in finished}
        return [Result(cell=self.cells[place], row=rows[place]) for place in sorted(rows)]


def work_of(
    host: Host,
    cells: Sequence[Cell],
    store: Store | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
) -> ReproductionPlan:
    """Look up everything that the cells name. Raises PipebenchError for workloads that cannot be made.

    A planner or an option of it that does not exist costs its own cells only: their rows say `skipped`.
    """
    builder = _Workloads(host)
    trials: list[Trial] = []
    places: list[int] = []
    refused: dict[int, Row] = {}
    for place, cell in enumerate(cells):
        workload = builder.workload(cell)
        try:
            trials.append(_trial(host, cell, workload))
        except PipebenchError as error:
            refused[place] = _refusal(cell, workload, str(error))
        else:
            places.append(place)
    return ReproductionPlan(cells, make_run_plan(host, trials, store, fresh, retry_failed), places, refused)


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of several artefacts. in_store, to_run: cells; expected_s: about how long the latter take."""

    in_store: int
    to_run: int
    expected_s: float


def remainder(works: Iterable[ReproductionPlan]) -> Remainder:
    """What is left of them, with a store: a cell that several share is run once."""
    in_store = 0
    left_s: dict[str, float] = {}
    for work in works:
        in_store += len(work.agenda.cached)
        for position in work.agenda.to_run:
            key = trial_key(work.agenda.inputs[position])
            left_s.setdefault(key, work.cells[work.places[position]].expected_s)
    return Remainder(in_store, len(left_s), sum(left_s.values()))


def run_cells(
    host: Host, work: ReproductionPlan, where: Where, watcher: TrialWatcher | None = None
) -> Iterator[FinishedTrial]:
    """All trials, those of the store first; each is in the store before the next one starts."""
    yield from work.agenda.cached
    yield from run_trials(host, work.agenda, where, watcher)


def _trial(host: Host, cell: Cell, workload: Workload) -> Trial:
    planner = ready_planner(host, parse_reference(cell.planner))
    regime = cell.regime or home_regime(planner)
    if cell.scheduler is not None:
        ready_scheduler(host, cell.scheduler)
    return Trial(
        workload=workload,
        regime=regime,
        planner=planner,
        scheduler=cell.scheduler,
        offered=() if cell.scheduler else _papers_scheduler(planner, regime),
        repeat=cell.repeat,
        timeout_s=cell.timeout_s,
    )


def _papers_scheduler(planner: Ready, regime: RegimeMode) -> tuple[str, ...]:
    """A paper's figure has the order that the paper means: the planner's own, not the best of all."""
    assert isinstance(planner.component, Planner)
    own = planner.component.default_scheduler.get(regime)
    return (own,) if own else ()


def _refusal(cell: Cell, workload: Workload, reason: str) -> Row:
    regime = cell.regime or "sync"
    problem = workload.problem(regime)
    return Row(
        workload=workload.name,
        model=workload.model,
        profile=problem.profile.name,
        cluster=problem.cluster.name,
        hardware=hardware(problem.cluster),
        devices=problem.cluster.accelerators,
        mini_batch=problem.mini_batch,
        regime=regime,
        problem_id=problem.problem_id,
        workload_id=problem.workload_id,
        planner=cell.planner,
        status="skipped",
        reason=reason,
    )


class _Workloads:
    """Workloads of cells; cells that differ in their planner share one."""

    def __init__(self, host: Host) -> None:
        self._builder = WorkloadBuilder(host)
        self._made: dict[str, Workload] = {}
        self._profiles: dict[Hashable, tuple[Profile, Profile]] = {}

    def workload(self, cell: Cell) -> Workload:
        name = " ".join(f"{axis}={value}" for axis, value in cell.at.items() if axis != "series")
        key = repr((name, cell.plain(), cell.input_bytes, cell.chain))
        if key not in self._made:
            made = self._builder.workload(cell, name)
            base = replace_fields(made.base, profile=self._profile(made.profile, cell))
            self._made[key] = replace(made, base=base)
        return self._made[key]

    def _profile(self, profile: Profile, cell: Cell) -> Profile:
        key = id(profile), cell.input_bytes, cell.chain, cell.micro_batch
        if key not in self._profiles:
            made = profile
            if cell.input_bytes is not None:
                made = scale_profile(made, cell.input_bytes / _input_bytes(made))
            if cell.chain:
                made = _as_chain(made, cell.micro_batch)
            self._profiles[key] = profile, made
        return self._profiles[key][1]


def _as_chain(profile: Profile, micro_batch: int | None) -> Profile:
    """One operator for each layer. Raises PipebenchError where the profile does not have the one size needed."""
    costs = profile.costs[0]
    sizes = costs.micro_batches
    if len(sizes) > 1:
        if micro_batch not in sizes:
            raise PipebenchError(
                f"profile {profile.name!r} has micro-batches {', '.join(map(str, sizes))}, not {micro_batch}",
                "profile that size, or one size alone",
            )
        costs = only(profile, costs.device_type, micro_batch).costs[0]
    plain = tuple(replace_fields(operator, axes={}) for operator in profile.graph.operators)
    graph, joined = join_layers(replace_fields(profile.graph, operators=plain), costs)
    return replace_fields(profile, graph=graph, costs=(joined,))


def _input_bytes(profile: Profile) -> float:
    """Bytes a sample of the model's inputs. Raises PipebenchError where the profile does not tell."""
    found = sum(t.forward_bytes_per_sample for t in profile.graph.tensors if t.producer is None)
    if found <= 0:
        raise PipebenchError(
            f"profile {profile.name!r} has no input tensor, so the size of its images is not known",
            "give a profile whose inputs are tensors",
        )
    return found
