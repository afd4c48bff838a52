"""A comparison: its request, its trials, and the order in which they run."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from pipebench.bench.components import Ready, ready_executor, ready_planner, ready_scheduler
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.ordering.schedulers import PRODUCED
from pipebench.bench.plan_entrants import ready_layout, ready_plan
from pipebench.bench.problems.workload import Workload
from pipebench.bench.suites import Settings
from pipebench.bench.trials.trial import Trial
from pipebench.defaults import EXAMPLE_PLANNERS, SIMULATOR, YARDSTICK
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.problem import RegimeMode
from pipebench.formats.documents import read_plan
from pipebench.formats.frameworks.layouts import is_foreign, read_layout
from pipebench.hooks.descriptors import Component, Planner, Scheduler
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_references
from pipebench.hooks.trust import Trust


@dataclass(frozen=True, slots=True)
class Request:
    """What to compare.

    regimes: empty for both, or, with a scheduler that is named, for the one that it is for; else a plan or layout
    that was made elsewhere stays in its own. own_regimes: each planner in the first that it plans for, or in all.
    schedulers: empty for the plan's own schedule, else the best that any scheduler makes. scheduler_regimes: for
    which regime each of them is.
    repeat: warm searches in one trial.
    rounds: how often each trial is run.
    coarsen: the most blocks of operators that planners see; 0: they see the operators.
    trusted: import paths out of files that executors may import.
    yardstick: a planner that runs on each workload too, once in each regime in which others run.
    """

    workloads: Sequence[Workload]
    planners: Sequence[Ready]
    regimes: tuple[RegimeMode, ...] = ()
    own_regimes: Literal["first", "all"] | None = None
    schedulers: tuple[str, ...] = ()
    scheduler_regimes: Mapping[str, RegimeMode] = field(default_factory=dict)
    executors: tuple[str, ...] = (SIMULATOR,)
    repeat: int = 1
    rounds: int = 1
    timeout_s: float = 300.0
    memory_bytes: int = SEARCH_MEMORY_BYTES
    seed: int = 0
    coarsen: int = 0
    trusted: frozenset[str] = frozenset()
    yardstick: Ready | None = None


def trials(request: Request) -> list[Trial]:
    """The trials in the order of the table: by workload, planner, regime, scheduler, round; yardsticks last."""
    found: list[Trial] = []
    for workload in request.workloads:
        entered = [
            _trial(request, workload, planner, regime, scheduler, repetition)
            for planner in request.planners
            for regime in request.regimes or _regimes(request, planner)
            for scheduler in request.schedulers or (None,)
            if request.regimes or scheduler is None or request.scheduler_regimes.get(scheduler, regime) == regime
            for repetition in range(request.rounds)
        ]
        found += entered
        if request.yardstick is not None:
            found += [
                replace(
                    _trial(request, workload, request.yardstick, regime, None, 0),
                    executors=(SIMULATOR,),
                    yardstick=True,
                )
                for regime in BOTH
                if any(each.regime == regime for each in entered)
            ]
    return found


def _trial(
    request: Request,
    workload: Workload,
    planner: Ready,
    regime: RegimeMode,
    scheduler: str | None,
    repetition: int,
) -> Trial:
    return Trial(
        workload=workload,
        regime=regime,
        planner=planner,
        scheduler=scheduler,
        executors=request.executors,
        repeat=request.repeat,
        timeout_s=request.timeout_s,
        memory_bytes=request.memory_bytes,
        coarsen=0 if planner.here else request.coarsen,
        seed=request.seed,
        repetition=repetition,
        trusted=request.trusted,
    )


BOTH: tuple[RegimeMode, ...] = ("sync", "async")
"""Each planner in both; where it plans for one only, its plans are adapted to the other."""


def _regimes(request: Request, planner: Ready) -> tuple[RegimeMode, ...]:
    if request.own_regimes is not None:
        return (home_regime(planner),) if request.own_regimes == "first" else planned_regimes(planner)
    if named := set(request.scheduler_regimes.values()):
        return tuple(regime for regime in BOTH if regime in named)
    return planned_regimes(planner) if planner.here else BOTH


def planned_regimes(planner: Ready) -> tuple[RegimeMode, ...]:
    """The regimes that a planner plans for, its own one first."""
    assert isinstance(planner.component, Planner)
    return planner.component.capabilities.regimes


def home_regime(planner: Ready) -> RegimeMode:
    """The regime that a planner plans for by default."""
    return planned_regimes(planner)[0]


def running_order(listed: Sequence[Trial], seed: int) -> list[int]:
    """The positions of the trials in the order in which they run; the same for the same seed.

    Workloads run one after the other. Within a workload each round runs every planner once, in a shuffled order;
    the next round runs it backwards (A-B-B-A), so that a drift of the machine affects all planners alike.
    """
    order: list[int] = []
    draw = random.Random(seed)
    for _, group in groupby(range(len(listed)), key=lambda position: id(listed[position].workload)):
        rounds: dict[int, list[int]] = {}
        for position in group:
            rounds.setdefault(listed[position].repetition, []).append(position)
        shuffled = list(range(max(map(len, rounds.values()))))
        for count, positions in enumerate(rounds.values()):
            if count % 2 == 0:
                draw.shuffle(shuffled)
            else:
                shuffled.reverse()
            order += [positions[place] for place in shuffled if place < len(positions)]
    return order


TIMEOUT_S = 300.0


def comparison_request(
    host: Host,
    read_workloads: Callable[[], Sequence[Workload]],
    settings: Settings,
    plans: Sequence[str] = (),
    rounds: int = 1,
    trust: Trust | None = None,
    yardstick: bool = False,
) -> Request:
    """The request of a command line and its suites.

    read_workloads: gives what is compared on; it is called when all names are known to be right.
    plans: plan files and framework layouts, scored beside the planners.
    trust: left out, no executor imports a model that a profile names.
    yardstick: whether the suite's yardstick runs beside planners that it is not one of.
    Raises PipebenchError for a wrong name, option or file, and where there is no planner.
    """
    planners = [ready_planner(host, reference) for reference in parse_references(settings.planners)]
    planners += [
        ready_layout(read_layout(path)) if is_foreign(path) else ready_plan(path, read_plan(path))
        for path in plans
    ]
    if not planners:
        hint = f"give --planners, such as --planners {','.join(EXAMPLE_PLANNERS)}"
        raise PipebenchError("no planner was named", hint, ExitCode.NOTHING_RAN)
    named = {name: ready_scheduler(host, name).component for name in settings.schedulers}
    executors = settings.executors or (SIMULATOR,)
    for name in executors:
        ready_executor(host, name)
    workloads = read_workloads()
    return Request(
        workloads=workloads,
        planners=planners,
        regimes=settings.regimes,
        schedulers=settings.schedulers,
        scheduler_regimes={name: _regime_of(component) for name, component in named.items()},
        executors=executors,
        repeat=settings.repeat or 1,
        rounds=rounds,
        timeout_s=TIMEOUT_S if settings.timeout_s is None else settings.timeout_s,
        memory_bytes=SEARCH_MEMORY_BYTES if settings.memory_bytes is None else settings.memory_bytes,
        seed=settings.seed or 0,
        coarsen=settings.coarsen or 0,
        trusted=_trusted_models(workloads, executors, trust or Trust()),
        yardstick=_yardstick(host, planners) if yardstick else None,
    )


def _yardstick(host: Host, planners: Sequence[Ready]) -> Ready | None:
    """None where it is compared anyway, or where nobody has installed it."""
    if YARDSTICK not in host.slot("planners") or any(planner.label == YARDSTICK for planner in planners):
        return None
    return ready_planner(host, Reference(YARDSTICK))


def _regime_of(component: Component) -> RegimeMode:
    assert isinstance(component, Scheduler)
    return next(regime for regime, kind in PRODUCED.items() if kind == component.capabilities.produces)


def _trusted_models(workloads: Sequence[Workload], executors: Sequence[str], trust: Trust) -> frozenset[str]:
    """The models that profiles name, where something but the simulator runs plans."""
    if all(name == SIMULATOR for name in executors):
        return frozenset()
    named = {each.profile.name: each.profile.provenance.captured for each in workloads}
    return frozenset().union(*(trust.models([model], f"profile {name!r}") for name, model in named.items()))
