"""The compiled kernels say what their Python text says."""

import random

import numpy as np
import pytest

from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe import chain_dp, feasibility
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from tests.plugins.graphpipe.instances import problem_on, random_series_parallel


def outcome(problem: Problem) -> object:
    called = Context(options=GraphPipeOptions(variant="paper", objective="tps"))
    try:
        result = plan(problem, called)
    except InfeasibleProblem as error:
        return error.message
    return result.plan, result.claimed_native, called.counters


@pytest.mark.parametrize("memory", [200, 400, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_the_search_is_the_same_without_a_compiler(
    seed: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    problem = problem_on(rng, 10, random_series_parallel(rng, 10), 4, memory)
    compiled = outcome(problem)
    with monkeypatch.context() as patch:
        for module, names in (
            (feasibility, ("extend_chain", "extend")),
            (chain_dp, ("_merge", "_side_by_side", "extend_chain", "extend")),
        ):
            for name in names:
                patch.setattr(module, name, getattr(module, name).py_func)
        assert outcome(problem) == compiled


@pytest.mark.parametrize("seed", range(5))
def test_merging_is_the_least_larger_depth_over_all_splits(seed: int) -> None:
    draw = np.random.default_rng(seed)
    many, one = draw.integers(0, 9, (3, 6)).astype(np.int32), draw.integers(0, 9, 6).astype(np.int32)
    found = chain_dp.merge(many, one)
    for row in range(3):
        for devices in range(6):
            best = min(max(many[row, left], one[devices - left]) for left in range(devices + 1))
            assert found[row, devices] == best
