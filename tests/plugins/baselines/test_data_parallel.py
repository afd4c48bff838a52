"""data-parallel against closed forms."""

import msgspec
import pytest

from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.hooks.context import Context
from pipebench_baselines.one_stage import data_parallel
from tests.builders import cluster, dag_problem
from tests.plugins.running import context, scheduled, time_ns


def two_operators(mode: RegimeMode, devices: int = 4, mini_batch: int = 16, memory: int = 10**9) -> Problem:
    """10 + 20 and 5 + 15 ns a sample, 40 bytes of weights at 1 byte/ns, 3 bytes saved a sample each."""
    return dag_problem(
        [10, 5],
        [20, 15],
        [(0, (1,), 6)],
        cluster(devices, memory),
        weights=[30, 10],
        saved=[3, 3],
        mode=mode,
        mini_batch=mini_batch,
        micro_batches=(1,) if mode == "sync" else (8,),
    )


def pinned(problem: Problem, **pins: object) -> Problem:
    return msgspec.structs.replace(problem, pins=Pins(**pins))  # type: ignore[arg-type]


@pytest.mark.parametrize("micro_batch", [4, 8, 16])
def test_sync_time_is_compute_and_one_all_reduce(micro_batch: int) -> None:
    problem = pinned(two_operators("sync"), micro_batch=micro_batch)
    result = data_parallel(problem, context())
    # 16 samples over 4 devices are 4 each, whatever the micro-batch; 2 x 3 steps of 40 / 4 bytes.
    assert round(result.claimed_s * 1e9) == 4 * (30 + 20) + 6 * 10
    assert time_ns(problem, result.plan) == 260


def test_async_spreads_the_all_reduce_over_micro_batches() -> None:
    problem = dag_problem(
        [20], [40], [], cluster(4), weights=[40], mode="async", mini_batch=12, micro_batches=(4,)
    )
    result = data_parallel(problem, context())
    assert time_ns(problem, result.plan) == 3 * (5 + 10 + 60 * 4 // 12)


def test_the_best_micro_batch_wins() -> None:
    problem = two_operators("sync")
    device = problem.profile.costs[0]
    # A launch of 8 ns a kernel makes one large micro-batch best; memory for 4 samples a device excludes it.
    operators = tuple(
        msgspec.structs.replace(c, forward_s=(9e-9, 10e-9, 12e-9, 16e-9), backward_s=(9e-9, 10e-9, 12e-9, 16e-9))
        for c in device.operators
    )
    device = msgspec.structs.replace(device, micro_batches=(1, 2, 4, 8), operators=operators)
    profile = msgspec.structs.replace(problem.profile, costs=(device,))
    problem = msgspec.structs.replace(problem, profile=profile)
    assert data_parallel(problem, context()).plan.stages[0].micro_batch == 16
    small = msgspec.structs.replace(problem, cluster=cluster(4, memory=80 + 6 + 5))
    assert data_parallel(small, context()).plan.stages[0].micro_batch == 4


@pytest.mark.parametrize(("devices", "mini_batch", "used"), [(4, 16, 4), (4, 2, 2), (8, 4, 4), (3, 16, 3)])
def test_every_device_with_a_sample_is_used(devices: int, mini_batch: int, used: int) -> None:
    problem = two_operators("sync", devices, mini_batch)
    plan = data_parallel(problem, context()).plan
    assert plan.stages[0].devices == tuple(range(used))
    assert plan.stages[0].data_parallel == used


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("pins", [{}, {"data_parallel": 2}, {"micro_batch": 8}, {"recompute": "stage"}])
def test_plans_are_valid_and_honour_pins(pins: dict[str, object], mode: RegimeMode) -> None:
    problem = pinned(two_operators(mode), **pins)
    plan = data_parallel(problem, context()).plan
    assert check_plan(problem, plan).status == "valid"
    assert check_pins(problem, plan).status == "valid"
    assert check_schedule(problem, plan, scheduled(problem, plan)).status == "valid"


@pytest.mark.parametrize("pins", [{"tensor_parallel": 2}, {"pipeline": 2}, {"virtual_stages": 2}])
def test_what_one_stage_cannot_do_is_refused(pins: dict[str, object]) -> None:
    with pytest.raises(UnsupportedProblem, match="2"):
        data_parallel(pinned(two_operators("sync"), **pins), context())


def test_infeasible_problems_say_what_is_missing() -> None:
    with pytest.raises(InfeasibleProblem, match="86 bytes"):
        data_parallel(two_operators("sync", memory=85), context())
    with pytest.raises(InfeasibleProblem, match="5 replicas"):
        data_parallel(pinned(two_operators("sync"), data_parallel=5), context())
    with pytest.raises(InfeasibleProblem, match="4 replicas"):
        data_parallel(pinned(two_operators("sync"), data_parallel=4, micro_batch=2), context())


def test_all_devices_are_used_beyond_the_largest_profiled_micro_batch() -> None:
    # Profiled up to 8 samples: 64 devices take micro-batches of up to 512, 8 samples each.
    problem = two_operators("sync", devices=64, mini_batch=1024)
    device = problem.profile.costs[0]
    operators = tuple(
        msgspec.structs.replace(c, forward_s=(5e-9, 6e-9, 8e-9, 12e-9), backward_s=(5e-9, 6e-9, 8e-9, 12e-9))
        for c in device.operators
    )
    device = msgspec.structs.replace(device, micro_batches=(1, 2, 4, 8), operators=operators)
    problem = msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, costs=(device,)))
    for mini_batch, devices, micro_batch in ((1024, 64, 512), (1000, 64, 500), (64, 64, 64), (2 * 7 * 8, 7, 56)):
        machines = cluster(devices, memory=10**9)
        result = data_parallel(
            msgspec.structs.replace(problem, mini_batch=mini_batch, cluster=machines), context()
        )
        (stage,) = result.plan.stages
        assert (stage.data_parallel, stage.micro_batch, result.notices) == (devices, micro_batch, ())


def test_idle_devices_are_said() -> None:
    result = data_parallel(two_operators("sync", devices=8, mini_batch=4), context())
    assert result.notices == ("uses 4 of 8 devices",)


def test_without_services_the_closed_form_chooses() -> None:
    problem = two_operators("sync")
    assert check_plan(problem, data_parallel(problem, Context(options=None)).plan).status == "valid"
