"""cost=released returns what the released optimizer returns, on every published profile that is at hand."""

from math import prod
from typing import Any

import msgspec
import numpy as np
import pytest

from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench_pipedream.paper_costs import join_branches, operator_units
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from pipebench_pipedream.states import states_of
from tests.plugins.pipedream.released_table import NESTED, ROWS
from tests.plugins.pipedream.shared_problems import NO_LIMIT, shared_problem
from tests.plugins.running import context, scheduled


def run(problem: Problem, mode: str = "", **options: Any) -> PlanResult:
    flags = mode.split("+")
    chosen = {
        "cost": "released",
        "states": "antichain",
        "communication": "charged" if "acr1" in flags else None,
        "replication": "none" if "straight" in flags else "any",
        "memory": "released" if "mem" in mode else "decreasing",
        "idle": "idle" in flags,
        **options,
    }
    return pipedream(problem, context(msgspec.convert(chosen, PipeDreamPlannerOptions)))


def memory_of(mode: str) -> int:
    return next((int(float(flag[3:])) for flag in mode.split("+") if flag.startswith("mem")), NO_LIMIT)


@pytest.mark.parametrize(("model", "devices", "mode", "seconds", "replicas"), ROWS)
def test_table(model: str, devices: int, mode: str, seconds: str, replicas: str) -> None:
    name = model.removesuffix("(compressed)")
    problem = shared_problem(name, devices, memory_of(mode))
    result = run(problem, mode, branches="kept" if name == model else "joined")
    assert f"{result.claimed_native:.6f}" == seconds
    assert result.claimed_s == result.claimed_native
    assert sum(stage.data_parallel for stage in result.plan.stages) == devices
    assert check_plan(problem, result.plan).status == "valid"
    if "acr1" not in mode:  # ties choose other splits there
        assert "-".join(str(stage.data_parallel) for stage in result.plan.stages) == replicas


PLAIN = [row for row in ROWS if "(" not in row[0] and (row[2] == "default" or row[2].startswith("mem"))]


@pytest.mark.parametrize(("model", "devices", "mode", "seconds", "replicas"), PLAIN)
def test_no_other_option_is_needed(model: str, devices: int, mode: str, seconds: str, replicas: str) -> None:
    problem = shared_problem(model, devices, memory_of(mode))
    result = pipedream(problem, context(PipeDreamPlannerOptions(cost="released")))
    assert f"{result.claimed_native:.6f}" == seconds
    assert "-".join(str(stage.data_parallel) for stage in result.plan.stages) == replicas
    assert not any("memory was not checked" in notice for notice in result.notices)


@pytest.mark.parametrize(("model", "machines", "bandwidths", "mode", "seconds"), NESTED)
def test_levels(
    model: str, machines: tuple[int, ...], bandwidths: tuple[float, ...], mode: str, seconds: str
) -> None:
    levels = tuple((prod(machines[: at + 1]), rate) for at, rate in enumerate(bandwidths))
    problem = shared_problem(model, prod(machines), memory_of(mode), levels=levels)
    result = run(problem, mode, levels="nested", states="first-source")
    assert f"{result.claimed_native:.6f}" == seconds
    used = [device for stage in result.plan.stages for device in stage.devices]
    assert len(used) == len(set(used))
    assert check_plan(problem, result.plan).status == "valid"


@pytest.mark.parametrize(
    ("model", "count"), [("alexnet", 22), ("vgg16", 40), ("resnet50", 240), ("densenet121", 430)]
)
def test_states_of_one_source_are_the_downsets(model: str, count: int) -> None:
    units = operator_units(CostModel(shared_problem(model, 2)), 1)
    walked = states_of(units, "first-source", (), "antichain")
    listed = states_of(units, "antichain", (), "antichain")
    assert walked.count == listed.count == count
    assert sorted(map(bytes, walked.holds)) == sorted(map(bytes, listed.holds))
    assert np.bitwise_count(walked.before).sum() == np.bitwise_count(listed.before).sum()


def test_several_sources_hang_on_a_virtual_root() -> None:
    """The note counts 562 with the root itself, 99 from the first source."""
    units = operator_units(CostModel(shared_problem("gnmt", 2)), 1)
    assert states_of(units, "antichain", (), "free").count == 562 - 1
    assert states_of(units, "first-source", (), "free").count == 99


def test_branches_of_inception_are_joined() -> None:
    """92 nodes with the input, 1646 states."""
    units = join_branches(operator_units(CostModel(shared_problem("inception_v3", 2)), 1))
    assert units.count == 92 - 1
    assert states_of(units, "antichain", (), "free").count == 1646


def test_a_straight_pipeline_that_does_not_fit_is_infeasible() -> None:
    """The code returns None and fails in printing."""
    with pytest.raises(InfeasibleProblem, match="no partition of 40 states over 16 devices"):
        run(shared_problem("vgg16", 16, 16 * 10**9), "straight+mem16e9")


def test_memory_with_idle_devices() -> None:
    """The code fails with a TypeError; fewer devices are never worse than all."""
    problem = shared_problem("vgg16", 8, 4 * 10**9)
    free = run(problem, "mem4e9+idle")
    assert free.claimed_native is not None
    assert free.claimed_native <= (run(problem, "mem4e9").claimed_native or 0)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_plans_can_be_scheduled(mode: Any) -> None:
    problem = shared_problem("resnet50", 4, mode=mode)
    result = run(problem, "acr1")
    assert check_schedule(problem, result.plan, scheduled(problem, result.plan)).status == "valid"
