"""pipebench from notebooks and scripts: compare, plan and draw, the same three verbs as on the command line.

A keyword is called as the option, but for these: profiles (--profile), configs (--config), suites (--suite),
sequence (--seq), timeout_s (--timeout), memory_bytes (--search-memory), store (--out) and dask_address
(--scheduler-address). Names are a list, or a text with commas as on the command line. A number may be a text.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from pipebench.bench.best import best
from pipebench.bench.cage.installed import installed_host
from pipebench.bench.components import ready_planner
from pipebench.bench.store import Store
from pipebench.bench.suites import Settings, settle
from pipebench.bench.suites.selection import Selection, SelectionKeywords, chosen_suites, select
from pipebench.bench.suites.settings import require_figures
from pipebench.bench.sweeps.run_plan import make_run_plan
from pipebench.bench.sweeps.sweep import Where, run_trials
from pipebench.bench.trials.comparison import comparison_request, home_regime, trials
from pipebench.bench.trials.trial import Trial, run_trial
from pipebench.defaults import BEST
from pipebench.domain.arguments import typed
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import RegimeMode
from pipebench.hooks.syntax import parse_reference, split_list
from pipebench.hooks.trust import Trust
from pipebench.report.drawing import Drawing, Drawings, Shape, drawings
from pipebench.report.notebook import Comparison, NotebookOutcome

__all__ = ["Comparison", "Drawing", "Drawings", "NotebookOutcome", "PipebenchError", "compare", "draw", "plan"]


@typed
def compare(
    planners: Sequence[str] | str = (),
    *,
    regime: RegimeMode | None = None,
    schedulers: Sequence[str] | str = (),
    executors: Sequence[str] | str = (),
    repeat: int | None = None,
    rounds: int = 1,
    timeout_s: float | None = None,
    memory_bytes: int | None = None,
    seed: int | None = None,
    coarsen: int | None = None,
    plans: Sequence[str] | str = (),
    store: str | Path | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    jobs: int = 1,
    dask_address: str | None = None,
    trust: bool = False,
    **workload: Unpack[SelectionKeywords],
) -> Comparison:
    """One row for each planner, workload, scheduler and round, as `pipebench compare` gives them.

    workload: models=, profiles=, suites=, devices=, memory=, … (`SelectionKeywords` lists them).
    coarsen: planners see at most so many blocks of operators; plans are scored in operators.
    plans: files whose plans are scored beside.
    store: a folder in which rows are kept and from which a comparison resumes.
    jobs, dask_address: run side by side.
    trust: whether suites may name programs and Python files, and profiles a model to import; a warning says which.

    Raises PipebenchError for names, options, types and files that are wrong. What goes wrong in a trial is in its
    row.
    """
    require_figures(timeout_s=timeout_s, memory_bytes=memory_bytes, repeat=repeat, rounds=rounds)
    require_figures(seed=seed, coarsen=coarsen, jobs=jobs)
    host, asked = installed_host(), Selection(**workload)
    said = Settings(
        planners=_texts(planners),
        regimes=(regime,) if regime else (),
        schedulers=_texts(schedulers),
        executors=_texts(executors),
        timeout_s=timeout_s,
        memory_bytes=memory_bytes,
        repeat=repeat,
        seed=seed,
        coarsen=coarsen,
    )
    trusting = Trust(trust, lambda line: warnings.warn(line, stacklevel=2))
    settings = settle(chosen_suites(asked), said, trusting)
    request = comparison_request(host, lambda: select(host, asked), settings, _texts(plans), rounds, trusting)
    kept = Store.open(store) if store is not None else None
    where = Where(jobs, dask_address)
    todo = make_run_plan(host, trials(request), kept, fresh, retry_failed)
    finished = [*todo.cached, *run_trials(host, todo, where)]
    return Comparison(each.outcome.row for each in sorted(finished, key=lambda each: each.position))


@typed
def plan(
    planner: str,
    *,
    regime: RegimeMode | None = None,
    timeout_s: float = 300.0,
    seed: int = 0,
    coarsen: int = 0,
    gap: float = 0.0,
    **workload: Unpack[SelectionKeywords],
) -> NotebookOutcome:
    """One plan with its row, schedule and traces, for exactly one workload.

    planner: `best` is the best of all, and of a search from their plans that ends with the time or at `gap`, a
    share of the proven bound.
    coarsen: the planner sees at most so many blocks of operators (0: the operators).
    """
    require_figures(timeout_s=timeout_s, seed=seed, coarsen=coarsen, gap=gap)
    host = installed_host()
    workloads = select(host, Selection(**workload))
    if len(workloads) != 1:
        raise PipebenchError(f"{len(workloads)} workloads are selected, a plan is for one")
    if planner == BEST:
        return NotebookOutcome.of(
            best(
                host, workloads[0], regime or "sync", timeout_s=timeout_s, seed=seed, coarsen=coarsen, gap=gap
            ).winner
        )
    ready = ready_planner(host, parse_reference(planner))
    trial = Trial(
        workload=workloads[0],
        regime=regime or home_regime(ready),
        planner=ready,
        timeout_s=timeout_s,
        seed=seed,
        coarsen=coarsen,
    )
    return NotebookOutcome.of(run_trial(host, trial))


@typed
def draw(
    schedulers: Sequence[str] | str,
    stages: int = 4,
    micro_batches: int = 8,
    forward: float = 1.0,
    backward: float = 2.0,
    transfer: float = 0.0,
    weight: float = 0.0,
    vpp: int = 2,
) -> Drawings:
    """The schedules of a pipeline of equal stages, simulated; `print(drawing)` shows the timeline.

    weight: the weight gradient's part of a backward. vpp: the parts of a stage, where devices run several in turn.
    A scheduler that refuses the shape is left out with a warning; where all refuse, UnsupportedProblem is raised.

    Raises PipebenchError for names and figures that are wrong.
    """
    names = [name for text in _texts(schedulers) for name in split_list(text)]
    shape = Shape(stages, micro_batches, forward, backward, transfer, weight, vpp)
    made, refused = drawings(installed_host(), names, shape)
    for each in refused:
        warnings.warn(str(each), stacklevel=3)
    return Drawings(made)


def _texts(given: Sequence[str] | str) -> tuple[str, ...]:
    """The given texts, of which each may be names by commas."""
    return (given,) if isinstance(given, str) else tuple(given)
