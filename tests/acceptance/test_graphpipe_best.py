"""No baseline simulates faster than graphpipe on the models of its paper.

Cells where the paper's own objective loses: DP or chains under true dependencies were better there.
"""

from functools import cache
from itertools import product

import pytest

from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bounds import time_bound
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.workload import WorkloadSpec
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.plugins.running import services, time_ns

PIPEDREAM = [
    f"pipedream[form={form},order={order},execution={execution},replicas=split]"
    for form, order, execution in product(("k", "bs"), ("branch", "level"), ("sequential", "graph"))
]
BASELINES = [*PIPEDREAM, "data-parallel", "graphpipe[variant=paper]"]
PROFILER = "analytic[max_tensor_parallel=1,recompute=false]"
SAMPLES = {"dlrm": 64, "candle-uno": 1024}
"""Samples a device (appendix A.2); 16 elsewhere."""


@cache
def builder() -> WorkloadBuilder:
    return WorkloadBuilder(Host())


def problem_of(model: str, devices: int, samples: int | None = None) -> Problem:
    reference = parse_reference(model)
    samples = samples or SAMPLES.get(reference.name, 16)
    spec = WorkloadSpec(
        model=str(reference),
        profiler=PROFILER,
        cluster="summit",
        devices=devices,
        mini_batch_per_device=samples,
        optimizer="adam",
    )
    return builder().workload(spec).problem("sync")


def planned_ns(planner: str, problem: Problem) -> int | None:
    try:
        return time_ns(problem, services().plan(planner, problem).plan)
    except InfeasibleProblem:
        return None


FAMILIES = ("mmt", "dlrm", "candle-uno", "transformer")


@pytest.mark.parametrize(
    ("model", "devices"),
    [
        *((model, 8) for model in FAMILIES[:3]),
        pytest.param("transformer", 8, marks=pytest.mark.nightly),
        *(pytest.param(model, count, marks=pytest.mark.nightly) for model in FAMILIES for count in (4, 16, 32)),
        pytest.param("mmt", 6, marks=pytest.mark.nightly),
        pytest.param("transformer", 12, marks=pytest.mark.nightly),
        ("case-study", 8),
        pytest.param("clip", 8, marks=pytest.mark.nightly),
    ],
)
def test_no_baseline_is_faster(model: str, devices: int) -> None:
    problem = problem_of(model, devices)
    own = planned_ns("graphpipe", problem)
    assert own is not None
    others = {name: planned_ns(name, problem) for name in BASELINES}
    assert [name for name, time in others.items() if time is not None and time < own] == []
    assert any(others.values())
    # No simulated throughput is above the proven limit (the notes found 1.07 to 2.3 between the two).
    least_ns = time_bound(problem).ns
    assert own >= least_ns
    assert least_ns > own / 2.5


@pytest.mark.parametrize(
    ("model", "devices", "samples", "branches", "last"),
    [
        pytest.param("mmt", 32, 16, (2, 4, 8, 16), 1.2, marks=pytest.mark.nightly),
        ("candle-uno", 8, 1024, (2, 4, 8), 1.3),
        ("candle-uno", 8, 64, (2, 4, 8), 1.9),
        pytest.param("candle-uno", 32, 64, (2, 4, 8, 16), 1.9, marks=pytest.mark.nightly),
    ],
)
def test_the_gain_over_pipedream_grows_with_the_branches(
    model: str, devices: int, samples: int, branches: tuple[int, ...], last: float
) -> None:
    """GraphPipe's figure 7, left, up to as many branches as devices: more cannot make the chain deeper.

    On CANDLE-Uno with 1024 samples a device on 32 devices it does not grow steadily: PipeDream, by its bottleneck
    alone, takes two stages of 16 replicas for 2 and 4 branches and 32 stages for 8 and 16.
    """
    gains = []
    for count in branches:
        problem = problem_of(f"{model}[branches={count}]", devices, samples)
        own, sequential = planned_ns("graphpipe", problem), planned_ns("pipedream[replicas=split]", problem)
        assert own
        assert sequential
        gains.append(sequential / own)
    assert gains == sorted(gains)
    assert gains[0] > 1.03
    assert gains[-1] > last
