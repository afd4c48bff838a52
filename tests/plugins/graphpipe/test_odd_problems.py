"""Problems that are legal and strange: one device, too many devices, sizes that do not divide, loose parts."""

import pytest

from pipebench.check import check_schedule
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from tests.builders import cluster, dag_problem
from tests.plugins.running import context, scheduled

VARIANTS = ["paper", "improved"]


def problem_of(operators: int, edges: dict[int, tuple[int, ...]], devices: int, mini_batch: int) -> Problem:
    return dag_problem(
        [10] * operators,
        [20] * operators,
        [(before, after, 1) for before, after in edges.items()],
        cluster(devices, 10**6, bandwidth=1e9),
        weights=[3] * operators,
        saved=[1] * operators,
        mini_batch=mini_batch,
        micro_batches=(1, 2, 4, 8),
    )


def planned(problem: Problem, variant: str) -> PlanResult:
    result = plan(problem, context(GraphPipeOptions(variant=variant)))  # type: ignore[arg-type]
    verdict = check_schedule(problem, result.plan, scheduled(problem, result.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
    return result


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_device_gets_one_stage(variant: str) -> None:
    result = planned(problem_of(4, {0: (1, 2), 1: (3,), 2: (3,)}, 1, 8), variant)
    assert [stage.devices for stage in result.plan.stages] == [(0,)]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "edges", [{}, {0: (1,), 2: (3,)}, {0: (2, 3), 1: (2, 3, 4)}, {0: (1, 2, 3)}, {0: (3,), 1: (3,)}]
)
def test_loose_parts_and_several_sources_and_sinks(edges: dict[int, tuple[int, ...]], variant: str) -> None:
    result = planned(problem_of(5, edges, 4, 8), variant)
    assert sum(len(stage.operators) for stage in result.plan.stages) == 5


@pytest.mark.parametrize("variant", VARIANTS)
def test_devices_that_cannot_be_used_are_said(variant: str) -> None:
    """Two operators and two samples keep four devices busy at most."""
    result = planned(problem_of(2, {0: (1,)}, 16, 2), variant)
    used = result.plan.devices_used
    assert used <= 4
    assert f"uses {used} of 16 devices" in result.notices


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("mini_batch", [7, 13, 12, 1])
def test_a_mini_batch_that_profiled_sizes_do_not_divide(mini_batch: int, variant: str) -> None:
    result = planned(problem_of(4, {0: (1, 2), 1: (3,), 2: (3,)}, 4, mini_batch), variant)
    assert all(mini_batch % stage.micro_batch == 0 for stage in result.plan.stages)
