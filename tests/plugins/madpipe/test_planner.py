"""madpipe's contiguous part: the plan of Algorithm 1, never worse than the exact contiguous optimum."""

import pytest
from hypothesis import given, settings

from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench_baselines.contiguous_exact import plan as contiguous_exact
from pipebench_baselines.plugin import ContiguousOptions
from pipebench_madpipe.planner import plan
from pipebench_madpipe.plugin import MadPipeOptions
from tests.algorithms.oracles import ORACLES
from tests.algorithms.strategies import chains
from tests.plugins.contiguous import resnet50
from tests.plugins.running import services
from tests.shared_data import shared_data


@pytest.mark.parametrize("name", ORACLES)
def test_the_contiguous_column_of_the_oracles(name: str) -> None:
    context = Context(options=MadPipeOptions())
    result = plan(ORACLES[name].problem, context)
    assert isinstance(result.schedule, PeriodicSchedule)
    assert result.schedule.period_ns == ORACLES[name].contiguous
    assert context.counters["probes"] > 0
    assert any("only contiguous allocations" in notice for notice in result.notices)


@settings(max_examples=60)
@given(chains())
def test_equal_to_contiguous_exact(problem: Problem) -> None:
    try:
        expected = contiguous_exact(problem, Context(options=ContiguousOptions())).claimed_s
    except InfeasibleProblem:
        with pytest.raises(InfeasibleProblem, match="no contiguous plan"):
            plan(problem, Context(options=MadPipeOptions()))
        return
    assert plan(problem, Context(options=MadPipeOptions())).claimed_s == expected


def test_found_by_name_on_resnet50() -> None:
    problem = resnet50(shared_data("pipedream/resnet50.txt"), 8, 12 * 10**9)
    result = services().plan("madpipe", problem)
    assert result.claimed_s == pytest.approx(0.1127, abs=5e-5)
    assert result.termination == "optimal"
