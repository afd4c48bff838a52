"""pipebench from notebooks and scripts: compare, plan and draw, the same three verbs as on the command line."""

from typing import Any

from pipebench.bench.comparison import Request, home_regime
from pipebench.bench.comparison import compare as run_comparison
from pipebench.bench.components import ready_planner
from pipebench.bench.selection import Selection, select
from pipebench.bench.trial import Outcome, Trial, run_trial
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from pipebench.report.drawing import Drawing, Shape, drawings


def compare(
    planners: list[str] | str,
    *,
    regime: RegimeMode | None = None,
    schedulers: list[str] | tuple[str, ...] = (),
    executors: list[str] | tuple[str, ...] = ("simulate",),
    repeat: int = 1,
    timeout_s: float = 300.0,
    seed: int = 0,
    **workload: Any,
) -> list[Row]:
    """One row for each planner and workload. workload: the fields of `Selection` (models=, profiles=, …).

    Raises PipebenchError for names, options and files that are wrong; what goes wrong inside a trial is in
    its row.
    """
    host = Host()
    names = [planners] if isinstance(planners, str) else planners
    request = Request(
        workloads=select(host, _selection(workload)),
        planners=[ready_planner(host, parse_reference(name)) for name in names],
        regime=regime,
        schedulers=tuple(schedulers),
        executors=tuple(executors),
        repeat=repeat,
        timeout_s=timeout_s,
        seed=seed,
    )
    return [outcome.row for outcome in run_comparison(host, request)]


def plan(
    planner: str, *, regime: RegimeMode | None = None, timeout_s: float = 300.0, seed: int = 0, **workload: Any
) -> Outcome:
    """One plan with its row, schedule and traces, for exactly one workload."""
    host = Host()
    ready = ready_planner(host, parse_reference(planner))
    workloads = select(host, _selection(workload))
    if len(workloads) != 1:
        raise PipebenchError(f"{len(workloads)} workloads are selected, a plan is for one")
    trial = Trial(
        workload=workloads[0],
        regime=regime or home_regime(ready),
        planner=ready,
        timeout_s=timeout_s,
        seed=seed,
    )
    return run_trial(host, trial)


def draw(
    schedulers: list[str] | str,
    stages: int = 4,
    micro_batches: int = 8,
    forward: float = 1.0,
    backward: float = 2.0,
    transfer: float = 0.0,
) -> list[Drawing]:
    """The schedules of a pipeline of equal stages, simulated; `print(drawing)` shows the timeline."""
    names = [schedulers] if isinstance(schedulers, str) else schedulers
    shape = Shape(stages, micro_batches, forward, backward, transfer)
    return drawings(Host(), names, shape)


def _selection(workload: dict[str, Any]) -> Selection:
    named: dict[str, Any] = {
        name: (value,) if name in ("models", "profiles", "suites") and isinstance(value, str) else value
        for name, value in workload.items()
    }
    try:
        return Selection(**named)
    except TypeError:
        wrong = sorted(set(named) - set(Selection.__slots__))
        raise PipebenchError(
            f"unknown arguments: {', '.join(wrong)}", f"valid: {', '.join(Selection.__slots__)}"
        ) from None
