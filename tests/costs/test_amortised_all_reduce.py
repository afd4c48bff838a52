"""The all-reduce that async spreads over backwards is one all-reduce a mini-batch, whatever the copies."""

import msgspec
import pytest

from pipebench.costs.model import CostModel
from tests.builders import chain_problem, cluster, stages_plan


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_backwards_of_a_mini_batch_hold_one_all_reduce(copies: int) -> None:
    problem = chain_problem([3], [5], cluster(8), weights=[800], mode="async", mini_batch=16)
    plan = msgspec.structs.replace(stages_plan([[0]], micro_batch=2, replicas=[2]), copies=copies)
    stage = plan.stages[0]
    model = CostModel(problem)
    backwards = 16 // copies // 2
    times = model.stage_times(stage, plan)
    sync = msgspec.structs.replace(problem, regime=msgspec.structs.replace(problem.regime, mode="sync"))
    once = CostModel(sync).stage_times(stage, plan).all_reduce
    assert once == 2 * (2 * copies - 1) * 800 // (2 * copies)
    assert times.all_reduce == 0
    assert backwards * (times.backward - 5) == pytest.approx(once, abs=backwards)
    assert backwards * (times.backward - 5) >= once
