"""madpipe over the paper's grid on measured networks: never behind a contiguous planner, close to its bound."""

import math

import pytest

from pipebench.algorithms.chains.contiguous import StageRange, contiguous_optimum
from pipebench.domain.errors import InfeasibleProblem
from pipebench.hooks.context import Context
from pipebench_madpipe.planner import plan
from pipebench_madpipe.plugin import MadPipeOptions
from tests.plugins.madpipe.brute_force import chain_of
from tests.plugins.madpipe.networks import PROFILED, cells, network, shipped
from tests.plugins.madpipe.pipedream_readings import READINGS, pipedream_period

LARGE = ("densenet121", "vgg16", "resnet50")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in LARGE else ()) for name in PROFILED]
)
def test_never_behind_contiguous_or_pipedream_under_any_reading(name: str) -> None:
    gaps = []
    for cell in cells((name,)):
        problem = network(*cell)
        chain, memory = chain_of(problem), problem.cluster.memory_bytes
        contiguous = contiguous_optimum(chain, StageRange(1, problem.cluster.size), memory).best
        rivals = [pipedream_period(problem, reading) for reading in READINGS]
        rivals.append(contiguous.period_ns if contiguous else None)
        try:
            result = plan(problem, Context(options=MadPipeOptions()))
        except InfeasibleProblem:
            assert rivals == [None] * 4, cell
            continue
        assert result.claimed_native is not None
        assert all(rival is None or result.claimed_native <= rival for rival in rivals), cell
        assert result.claimed_s is not None
        assert result.lower_bound_s is not None
        gaps.append(result.claimed_s / result.lower_bound_s)
    # The study's mean over all networks is 2.1 %; no network of ours alone is at twice that.
    assert math.exp(sum(map(math.log, gaps)) / len(gaps)) < 1.042


@pytest.mark.parametrize("name", ["resnet50", "resnet101"])
def test_more_places_to_cut_are_never_worse(name: str) -> None:
    for cell in ((2, 16, 12), (4, 10, 24), (8, 6, 12)):
        problem = shipped(*cell, name)
        anywhere = plan(problem, Context(options=MadPipeOptions(cuts="operators"))).claimed_s
        layers = plan(problem, Context(options=MadPipeOptions(cuts="layers"))).claimed_s
        assert anywhere is not None
        assert layers is not None
        assert anywhere <= layers, cell
