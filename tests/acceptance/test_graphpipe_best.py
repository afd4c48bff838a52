"""No baseline simulates faster than graphpipe (variant=best) on the models of its paper.

Cells where the paper's own objective loses: DP or chains under true dependencies were better there.
"""

from functools import cache
from itertools import product

import pytest

from pipebench.bench.problems.wanted import Wanted
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.plugins.running import services, time_ns

PIPEDREAM = [
    f"pipedream[form={form},order={order},execution={execution}]"
    for form, order, execution in product(("k", "bs"), ("branch", "level"), ("sequential", "graph"))
]
BASELINES = [*PIPEDREAM, "data-parallel", "graphpipe[variant=paper]"]
SAMPLES = {"dlrm": 64, "candle-uno": 1024}
"""Samples a device (appendix A.2); 16 elsewhere."""


@cache
def builder() -> WorkloadBuilder:
    return WorkloadBuilder(Host())


def problem_of(model: str, devices: int) -> Problem:
    reference = parse_reference(model)
    samples = SAMPLES.get(reference.name, 16)
    wanted = Wanted(
        model=reference, cluster="summit", devices=devices, mini_batch_per_device=samples, optimizer="adam"
    )
    return builder().workload(wanted).problem("sync")


def planned_ns(planner: str, problem: Problem) -> int | None:
    try:
        return time_ns(problem, services().plan(planner, problem).plan)
    except InfeasibleProblem:
        return None


@pytest.mark.parametrize(
    ("model", "devices"),
    [
        ("mmt", 6),
        ("mmt", 16),
        ("mmt", 32),
        ("transformer", 12),
        ("dlrm", 8),
        ("dlrm", 32),
        ("candle-uno", 8),
        ("candle-uno", 32),
        ("case-study", 8),
        ("clip", 8),
    ],
)
def test_no_baseline_is_faster(model: str, devices: int) -> None:
    problem = problem_of(model, devices)
    own = planned_ns("graphpipe", problem)
    assert own is not None
    others = {name: planned_ns(name, problem) for name in BASELINES}
    assert [name for name, time in others.items() if time is not None and time < own] == []
    assert any(others.values())


def test_the_gain_over_pipedream_grows_with_the_branches() -> None:
    """Multi-Modal Transformer on 32 devices with 2, 4, 8 and 16 branches (Figure 7, left, has CANDLE-Uno).

    On CANDLE-Uno it does not grow in these profiles: at 1024 samples a device little time goes into filling.
    """
    gains = []
    for branches in (2, 4, 8, 16):
        problem = problem_of(f"mmt[branches={branches}]", 32)
        own, sequential = planned_ns("graphpipe", problem), planned_ns("pipedream", problem)
        assert own
        assert sequential
        gains.append(sequential / own)
    assert gains == sorted(gains)
    assert gains[0] > 1.1
    assert gains[-1] > 1.2
