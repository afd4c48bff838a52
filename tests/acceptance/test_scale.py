"""Any graph for any planner: thousands of operators and hundreds of devices, with and without blocks."""

import time
from bisect import bisect_right

import pytest

from pipebench.algorithms.coarse import coarsen
from pipebench.bench.cage.installed import installed_host
from pipebench.bench.components import ready_planner
from pipebench.bench.searches.isolated import TimedSearch
from pipebench.bench.trials import trial as trials
from pipebench.bench.trials.trial import Outcome, Trial, run_trial
from pipebench.costs.model import CostModel
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.syntax import Reference
from tests.algorithms.large import BRANCHES, Shape, large_problem
from tests.bench.ready import workload

SHAPES: tuple[Shape, ...] = ("chain", "branches")
SPLITTERS = ("expert", "mcmc", "pase", "tensor-parallel")
"""Planners that split operators."""
OTHERS = (
    *("alpa-inter", "contiguous-exact", "data-parallel", "gpipe-hybrid", "graphpipe", "layout", "local-search"),
    *("madpipe", "pipedream", "pipedream-2bw", "piper", "rannc", "tarnawski", "uniform"),
)


def test_the_planners_are_all_here() -> None:
    assert sorted((*SPLITTERS, *OTHERS)) == sorted(installed_host().slot("planners"))


def outcome(
    patch: pytest.MonkeyPatch,
    name: str,
    shape: Shape,
    operators: int,
    devices: int,
    memory: int,
    blocks: int,
) -> tuple[Outcome, TimedSearch]:
    """A search of one planner in its own regime, once."""
    kept: list[TimedSearch] = []

    def kept_search(*given: object) -> TimedSearch:
        kept.append(plain(*given))  # type: ignore[arg-type]
        return kept[-1]

    plain = trials.timed_search
    patch.setattr(trials, "timed_search", kept_search)
    host = installed_host()
    ready = ready_planner(host, Reference(name))
    assert isinstance(ready.component, Planner)
    trial = Trial(
        workload=workload(large_problem(shape, operators, devices)),
        regime=ready.component.capabilities.regimes[0],
        planner=ready,
        repeat=0,
        memory_bytes=memory,
        coarsen=blocks,
    )
    made = run_trial(host, trial)
    return made, kept[-1]


def test_ten_thousand_operators_are_joined_in_seconds() -> None:
    """Balanced, of equal total work, and no block of two branches."""
    problem = large_problem("branches", 10_000, 64)
    began = time.process_time()
    coarse = coarsen(problem, 64)
    assert time.process_time() - began < 10
    assert len(coarse.problem.profile.graph.operators) <= 64
    work = CostModel(coarse.problem).times.at(8)[0]
    assert int(work.sum()) == int(CostModel(problem).times.at(8)[0].sum())
    assert work.max() <= 1.25 * work.sum() / 64
    starts = [1 + 9_998 * branch // BRANCHES for branch in range(BRANCHES)]
    branches = [
        {bisect_right(starts, int(name[2:])) for name in names if name not in ("op0", "op9999")}
        for names in coarse.operators.values()
    ]
    assert max(map(len, branches)) <= 1


@pytest.mark.parametrize("name", ["piper", "madpipe", "tarnawski"])
def test_two_thousand_operators_in_blocks(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    made, search = outcome(monkeypatch, name, "branches", 2_000, 64, 4 * 10**9, 16)
    assert (made.row.status, made.row.verdict) == ("ok", "valid"), made.row.reason
    assert made.plan is not None
    assert len({name for stage in made.plan.stages for name in stage.operators}) == 2_000
    assert search.first.cpu_s < 20


@pytest.mark.nightly
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OTHERS)
def test_ten_thousand_operators_on_512_devices_in_blocks(
    monkeypatch: pytest.MonkeyPatch, name: str, shape: Shape
) -> None:
    made, search = outcome(monkeypatch, name, shape, 10_000, 512, 4 * 10**9, 64)
    assert (made.row.status, made.row.verdict) == ("ok", "valid"), made.row.reason
    assert search.first.cpu_s < 60


@pytest.mark.nightly
@pytest.mark.parametrize("name", SPLITTERS)
def test_who_splits_operators_refuses_blocks(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    made, search = outcome(monkeypatch, name, "chain", 10_000, 512, 4 * 10**9, 64)
    assert made.row.status == "unsupported"
    assert made.row.reason.startswith(f"{name} splits operators; a block cannot be split")
    assert search.first.wall_s < 1


@pytest.mark.nightly
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [*OTHERS, "expert", "mcmc", "pase"])
def test_a_thousand_operators_on_64_devices(monkeypatch: pytest.MonkeyPatch, name: str, shape: Shape) -> None:
    made, search = outcome(monkeypatch, name, shape, 1_000, 64, 2 * 10**9, 0)
    if made.row.status == "unsupported":
        assert "--coarsen" in made.row.reason
        assert search.first.wall_s < 1
    else:
        assert (made.row.status, made.row.verdict) == ("ok", "valid"), made.row.reason
        assert search.first.cpu_s < 20
