"""Every plan of a tiny problem with experts that ranks share out: priced naively, none below the bounds."""

import pytest
from msgspec.structs import replace

from pipebench.bounds import memory_bound, time_bound
from pipebench.costs.model import CostModel
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import OptimizerSharding, Problem
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
from tests.bounds.every_plan import length_ns, memory_bytes, plans
from tests.costs.test_experts import DENSE, EXPERTS, one_layer

RANKS, TABLE = 2, 8_000
"""Ranks that share out experts; bytes of the weights of the operator before them."""


def tiny(sharding: OptimizerSharding) -> Problem:
    """A table, then the layer with experts, plain and over two devices; four devices, four samples."""
    given = one_layer(RANKS, sharding)
    (layer,) = given.profile.graph.operators
    (on,) = given.profile.costs
    graph = OperatorGraph(
        name="tiny",
        operators=(
            Operator(name="table", kind="op", parameters=("t",)),
            replace(layer, inputs=("rows",)),
        ),
        tensors=(
            Tensor(name="rows", producer="table", forward_bytes_per_sample=0.0, gradient_bytes_per_sample=0.0),
        ),
        parameters=(Parameter(name="t", bytes=TABLE), *given.profile.graph.parameters),
    )
    table = OperatorCosts(operator="table", forward_s=(1e-6,), backward_s=(3e-6,))
    short = replace(on.operators[0], forward_s=(2e-6,), backward_s=(4e-6,))
    ways = tuple(replace(way, forward_s=(1e-6,), backward_s=(2e-6,)) for way in short.alternatives)
    costs = DeviceCosts(
        device_type="gpu", micro_batches=(1,), operators=(table, replace(short, alternatives=ways))
    )
    return replace(
        given,
        profile=Profile(name="tiny", graph=graph, costs=(costs,)),
        cluster=replace(given.cluster, devices=("gpu",) * 4),
        mini_batch=4,
    )


def parts(plan: Plan, stage: Stage) -> list[tuple[int, int]]:
    """Bytes on one device of a stage and the ranks that hold the same ones."""
    replicas = stage.data_parallel * plan.copies
    held = [(TABLE, replicas)] if "table" in stage.operators else []
    if "layer" in stage.operators:
        held.append((DENSE // 2 if stage.tensor_parallel == 2 else DENSE, replicas))
        held.append((EXPERTS, replicas * stage.tensor_parallel // RANKS))
    return held


def state(held: list[tuple[int, int]], sharding: OptimizerSharding) -> int:
    """fp32: weights, gradients, and twice as much of Adam's."""
    shared = {"none": (1, 1), "zero1": (1, 0), "zero3": (0, 0)}[sharding]
    return sum(
        2 * size // (1 if shared[0] else alike) + 2 * size // (1 if shared[1] else alike) for size, alike in held
    )


@pytest.mark.parametrize("sharding", ["none", "zero1", "zero3"])
def test_every_plan_by_hand_and_above_the_bounds(sharding: OptimizerSharding) -> None:
    given = tiny(sharding)
    model = CostModel(given)
    times, peaks = [], []
    for plan in plans(given):
        for at, stage in enumerate(plan.stages):
            held = parts(plan, stage)
            if "layer" in stage.operators:
                assert stage.data_parallel * stage.tensor_parallel % RANKS == 0
                assert stage.turns == 1
                assert stage.tensor_parallel in (1, 2)
            assert model.stage_memory(plan, at, model.messages(plan)).held == state(held, sharding)
            if sharding != "zero3":
                # Gradients of parts that as many ranks hold are sent together: one rounding, here none.
                rings = sum(2 * (alike - 1) * size // alike for size, alike in held if size % alike == 0)
                assert abs(model.all_reduce_ns(stage, plan) - rings) <= 2
        times.append(length_ns(model, plan))
        peaks.append(memory_bytes(model, plan))
    assert len(times) > 20
    assert time_bound(given).ns <= min(times)
    assert memory_bound(given).value <= min(peaks)
