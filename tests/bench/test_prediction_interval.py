"""Intervals of predictions: the group of a run, and what a plan gets."""

from typing import Any

import msgspec
import pytest

from pipebench.bench.prediction_interval import (
    EXPERTS,
    JUDGED_RUNS,
    NODES,
    ONE_NODE_SPLIT,
    ONE_NODE_WHOLE,
    POOLED,
    Interval,
    Residuals,
    interval_of,
    residuals_of,
)
from pipebench.domain.framework import Spread, StepCosts
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from tests.builders import chain_problem, cluster
from tests.language_models import TINY, problem

PLAN = Plan(stages=(Stage(operators=("layers.0",), devices=(0,), micro_batch=1),))


def priced(made: Problem, **said: Any) -> Problem:
    """The problem with a framework's step."""
    step = StepCosts(framework="torchtitan", optimizer_s_per_element=0.0, **said)
    return msgspec.structs.replace(made, regime=msgspec.structs.replace(made.regime, step=step))


@pytest.mark.parametrize(
    ("framework", "device", "devices", "tensor", "group"),
    [
        ("megatron-deepspeed", "A100-SXM4-80GB", 8, 1, ONE_NODE_WHOLE),
        ("megatron-deepspeed", "a100-sxm4-40gb", 8, 2, ONE_NODE_SPLIT),
        ("megatron-deepspeed", "A100-SXM4-80GB", 16, 1, NODES),
        ("megatron-v2", "A100-SXM4-80GB", 512, 8, JUDGED_RUNS),
        ("megatron-v2", "V100-SXM2-16GB", 8, 1, POOLED),
        ("torchtitan", "A100-SXM4-80GB", 8, 1, POOLED),
    ],
)
def test_a_prediction_belongs_to_the_runs_that_are_like_it(
    framework: str, device: str, devices: int, tensor: int, group: Residuals
) -> None:
    assert residuals_of(framework, device, devices, tensor) == group


def test_every_group_has_thirty_runs_and_the_pool_is_as_wide_as_any() -> None:
    groups = (ONE_NODE_WHOLE, ONE_NODE_SPLIT, NODES, JUDGED_RUNS)
    assert all(each.count >= 30 for each in (*groups, EXPERTS))
    assert POOLED.low == min(each.low for each in groups)
    assert POOLED.high == max(each.high for each in groups)


def test_without_a_framework_there_is_no_interval() -> None:
    model = problem(devices=1, **TINY)
    assert interval_of(model, PLAN, 2.0) is None
    made = interval_of(priced(model), PLAN, 2.0)
    assert made is not None
    assert (made.low_s, made.high_s) == (2 * POOLED.low, 2 * POOLED.high)


def test_published_runs_say_nothing_of_other_models_and_regimes() -> None:
    """All were of language models, with a flush at each update."""
    assert interval_of(priced(chain_problem([5], [5], cluster(1), mode="sync")), PLAN, 2.0) is None
    model = problem(devices=1, **TINY)
    steady = msgspec.structs.replace(model, regime=msgspec.structs.replace(model.regime, mode="async"))
    assert interval_of(priced(steady), PLAN, 2.0) is None
    routed = TINY | {"architecture": "mixtral", "experts": 4, "active": 2}
    assert interval_of(priced(problem(devices=4, **routed)), PLAN, 2.0) is not None
    assert interval_of(priced(problem(devices=4, context_parallel=2, **TINY)), PLAN, 2.0) is None


def test_ranks_that_share_out_experts_have_runs_of_their_own() -> None:
    """But not where constants were fitted to other runs."""
    routed = TINY | {"architecture": "mixtral", "experts": 4, "active": 2}
    shared = problem(devices=4, expert_parallel=4, **routed)
    made = interval_of(priced(shared), PLAN, 2.0)
    assert made is not None
    assert (made.low_s, made.high_s, made.residuals) == (2 * EXPERTS.low, 2 * EXPERTS.high, EXPERTS)
    own = Spread(low=0.75, high=1.5, count=31, left_out="runs")
    assert interval_of(priced(shared, calibrated=own), PLAN, 2.0) is None


def test_calibrated_constants_have_the_spread_of_their_own_runs_or_no_interval() -> None:
    """Residuals of published runs say nothing of constants that were fitted to others."""
    model = problem(devices=1, **TINY)

    def interval(calibrated: Spread | None) -> Interval | None:
        return interval_of(priced(model, calibrated=calibrated), PLAN, 2.0)

    assert interval(None) is None
    made = interval(Spread(low=0.75, high=1.5, count=31, left_out="runs"))
    assert made is not None
    assert (made.low_s, made.high_s, made.residuals.count) == (1.5, 3.0, 31)
    assert made.residuals.what == "runs of the calibration, each by a fit without it"


def test_a_problem_without_a_calibration_keeps_its_identity() -> None:
    """What was stored under a problem's name before there were calibrated spreads is found again."""
    step = StepCosts(framework="megatron", optimizer_s_per_element=0.0)
    assert "calibrated" not in msgspec.to_builtins(step)
    assert msgspec.to_builtins(msgspec.structs.replace(step, calibrated=None))["calibrated"] is None
