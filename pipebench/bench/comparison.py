"""A comparison: every planner on every workload, each planner in its own regime unless one is asked for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipebench.bench.components import Ready
from pipebench.bench.trial import Outcome, Trial, run_trial
from pipebench.bench.workload import Workload
from pipebench.domain.problem import RegimeMode
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host


@dataclass(frozen=True, slots=True)
class Request:
    """What to compare. schedulers empty: the plan's own, or each planner's default."""

    workloads: Sequence[Workload]
    planners: Sequence[Ready]
    regime: RegimeMode | None = None
    schedulers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ("simulate",)
    repeat: int = 1
    timeout_s: float = 300.0
    seed: int = 0


def trials(request: Request) -> Iterator[Trial]:
    """The trials in the order in which they run: workload by workload."""
    for workload in request.workloads:
        for planner in request.planners:
            for scheduler in request.schedulers or (None,):
                yield Trial(
                    workload=workload,
                    regime=request.regime or home_regime(planner),
                    planner=planner,
                    scheduler=scheduler,
                    executors=request.executors,
                    repeat=request.repeat,
                    timeout_s=request.timeout_s,
                    seed=request.seed,
                )


def home_regime(planner: Ready) -> RegimeMode:
    """The regime that a planner plans for when nothing is said."""
    assert isinstance(planner.component, Planner)
    return planner.component.capabilities.regimes[0]


def outcomes(host: Host, request: Request, starting: Callable[[Trial], None] | None = None) -> Iterator[Outcome]:
    """Run the trials one by one; `starting` is told of each before it runs."""
    for trial in trials(request):
        if starting is not None:
            starting(trial)
        yield run_trial(host, trial)


def compare(host: Host, request: Request, starting: Callable[[Trial], None] | None = None) -> list[Outcome]:
    """Run all trials."""
    return list(outcomes(host, request, starting))
