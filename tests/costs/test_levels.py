"""Which bandwidth and latency a message or an all-reduce meets on a cluster of several link levels."""

import msgspec
import pytest

from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from tests.builders import chain_problem, cluster, stages_plan

WEIGHTS = 1600


def two_levels(*, shared: float | None = None, node: float = 8e9, network: float = 1e9) -> Problem:
    """Sixteen devices in nodes of eight; latency 5 ns in a node, 2 ns outside; 100 bytes to the second stage."""
    levels = (
        LinkLevel(name="node", group=8, latency_s=5e-9, bandwidth_bytes_s=node),
        LinkLevel(
            name="net", group=16, latency_s=2e-9, bandwidth_bytes_s=network, shared_bandwidth_bytes_s=shared
        ),
    )
    on = msgspec.structs.replace(cluster(16), levels=levels)
    return chain_problem(
        [1, 1], [1, 1], on, activations=[0, 100, 0], weights=[WEIGHTS] * 2, mode="sync", mini_batch=16
    )


def reduce_ns(problem: Problem, devices: tuple[int, ...], tensor_parallel: int = 1) -> int:
    replicas = len(devices) // tensor_parallel
    stage = Stage(
        operators=("op0",),
        devices=devices,
        data_parallel=replicas,
        tensor_parallel=tensor_parallel,
        micro_batch=16,
    )
    return CostModel(problem).stage_times(stage).all_reduce


@pytest.mark.parametrize(("node", "network", "rate"), [(8e9, 1e9, 1), (1e9, 4e9, 1), (2e9, 2e9, 2)])
def test_the_slowest_bandwidth_and_the_largest_latency_of_the_levels_crossed(
    node: float, network: float, rate: int
) -> None:
    problem = two_levels(node=node, network=network)
    model = CostModel(problem)
    stages = tuple(Stage(operators=(f"op{i}",), devices=(8 * i,), micro_batch=1) for i in range(2))
    plan = Plan(stages=stages)
    assert model.message_ns(plan, model.messages(plan)[0]) == 5 + 100 // rate
    assert reduce_ns(problem, (0, 8)) == 2 * (5 + WEIGHTS // 2 // rate)
    assert reduce_ns(problem, (0, 1)) == 2 * (5 + WEIGHTS // 2 // int(node / 1e9))


@pytest.mark.parametrize(("node", "network"), [(8e9, 1e9), (1e9, 4e9)])
def test_the_flat_level_of_a_cluster_is_what_the_cost_model_meets(node: float, network: float) -> None:
    on = two_levels(node=node, network=network).cluster
    assert (on.flat(16).bandwidth_bytes_s, on.flat(16).latency_s) == (1e9, 5e-9)
    assert (on.flat(8).bandwidth_bytes_s, on.flat(8).latency_s) == (node, 5e-9)
    assert on.flat(16).group == 16
    whole = msgspec.structs.replace(two_levels(node=node, network=network), cluster=on.first(12))
    assert reduce_ns(whole, (0, 8)) == reduce_ns(two_levels(node=node, network=network), (0, 8))


@pytest.mark.parametrize(
    ("shared", "tensor_parallel", "rate"),
    [(0.5e9, 1, 0.5), (2e9, 1, 1), (2e9, 4, 0.5), (1e9, 8, 0.125), (8e9, 8, 1), (None, 8, 1)],
)
def test_rings_that_leave_a_node_together_share_its_way_out(
    shared: float | None, tensor_parallel: int, rate: float
) -> None:
    first = tuple(range(tensor_parallel))
    devices = (*first, *(8 + device for device in first))
    assert reduce_ns(two_levels(shared=shared), devices, tensor_parallel) == 2 * (5 + WEIGHTS // 2 / rate)


def test_only_the_rings_that_a_node_has_devices_of_leave_it() -> None:
    """Tensor parallelism of eight on nodes of eight: eight rings; a node cannot be left by more than it holds."""
    levels = (
        LinkLevel(name="node", group=2, bandwidth_bytes_s=8e9),
        LinkLevel(name="net", group=16, bandwidth_bytes_s=8e9, shared_bandwidth_bytes_s=1e9),
    )
    problem = two_levels()
    problem = msgspec.structs.replace(problem, cluster=msgspec.structs.replace(problem.cluster, levels=levels))
    assert reduce_ns(problem, tuple(range(16)), 8) == 2 * (WEIGHTS // 2) * 2


def test_copies_reduce_on_the_level_that_they_span_together() -> None:
    problem = two_levels()
    model = CostModel(problem)
    for copies, per_step in ((2, 1 / 8), (4, 1 / 8), (8, 1)):
        plan = msgspec.structs.replace(stages_plan([[0], [1]]), copies=copies)
        steps = 2 * (copies - 1)
        assert model.stage_times(plan.stages[0], plan).all_reduce == round(
            steps * (5 + WEIGHTS / copies * per_step)
        )
    apart = Plan(stages=tuple(Stage(operators=(f"op{i}",), devices=(8 * i,), micro_batch=1) for i in range(2)))
    # Copy 1 is on devices 2 and 10: each stage stays in its node.
    apart = msgspec.structs.replace(apart, copies=2)
    assert {model.stage_times(stage, apart).all_reduce for stage in apart.stages} == {2 * (5 + WEIGHTS // 16)}


def test_stages_that_list_the_same_devices_in_another_order_pass_tensors_in_place() -> None:
    problem = two_levels()
    ways = ((0, 1), (1, 0))
    plan = Plan(
        placement="listed",
        stages=tuple(
            Stage(operators=(f"op{i}",), devices=ids, data_parallel=2, micro_batch=2) for i, ids in enumerate(ways)
        ),
    )
    same = msgspec.structs.replace(
        plan, stages=tuple(msgspec.structs.replace(stage, devices=(0, 1)) for stage in plan.stages)
    )
    model = CostModel(problem)
    edges = model.messages(plan)
    assert model.message_ns(plan, edges[0]) == 0
    for stage in range(2):
        assert model.stage_memory(plan, stage, edges) == model.stage_memory(same, stage, edges)
