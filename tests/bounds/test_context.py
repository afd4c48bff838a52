"""Every plan of a tiny problem whose ranks share out sequences: priced naively, none below the bounds."""

import pytest
from msgspec.structs import replace

from pipebench.bounds import memory_bound, time_bound
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import Ranks
from pipebench.domain.problem import OptimizerSharding, Problem
from tests.bounds.every_plan import length_ns, memory_bytes, plans
from tests.bounds.test_experts import tiny as tiny_with_experts
from tests.costs.test_experts import DENSE, EXPERTS


def tiny(sharding: OptimizerSharding, ranks: int) -> Problem:
    """A table, then a layer, plain and over two devices; four devices of so many ranks, four samples."""
    given = tiny_with_experts("none")
    graph, (on,) = given.profile.graph, given.profile.costs
    (level,) = given.cluster.levels
    return Problem(
        profile=replace(
            given.profile,
            graph=replace(
                graph,
                parameters=tuple(replace(each, expert_bytes=0) for each in graph.parameters),
                context_parallel=ranks,
            ),
            costs=(
                replace(
                    on,
                    operators=tuple(
                        replace(
                            each,
                            alternatives=tuple(replace(way, expert_bytes=0) for way in each.alternatives),
                        )
                        for each in on.operators
                    ),
                ),
            ),
        ),
        cluster=replace(
            given.cluster,
            ranks=Ranks(count=ranks, levels=(replace(level, group=ranks * level.group),)),
        ),
        mini_batch=given.mini_batch,
        regime=replace(given.regime, optimizer_sharding=sharding, expert_parallel=1, context_parallel=ranks),
    )


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("sharding", ["none", "zero1", "zero3"])
def test_every_plan_by_hand_and_above_the_bounds(sharding: OptimizerSharding, ranks: int) -> None:
    """fp32: weights, gradients, and twice as much of Adam's. Five ranks share out what is not whole for each."""
    given = tiny(sharding, ranks)
    model = CostModel(given)
    times, peaks = [], []
    whole = {"none": (1, 1), "zero1": (1, 0), "zero3": (0, 0)}[sharding]
    for plan in plans(given):
        for at, stage in enumerate(plan.stages):
            held = 8_000 if "table" in stage.operators else 0
            if "layer" in stage.operators:
                held += DENSE // 2 + EXPERTS if "tp2" in stage.choice else DENSE + EXPERTS
            alike = stage.data_parallel * plan.copies * ranks
            state = 2 * held / (1 if whole[0] else alike) + 2 * held / (1 if whole[1] else alike)
            assert 0 <= model.stage_memory(plan, at, model.messages(plan)).held - state < 2
            if sharding != "zero3":
                assert abs(model.all_reduce_ns(stage, plan) - 2 * (alike - 1) * held / alike) <= 1
        times.append(length_ns(model, plan))
        peaks.append(memory_bytes(model, plan))
    assert len(times) > 20
    assert time_bound(given).ns <= min(times)
    assert memory_bound(given).value <= min(peaks)


@pytest.mark.parametrize("sharding", ["none", "zero1", "zero3"])
def test_experts_of_one_device_are_bounded_by_what_its_ranks_hold(sharding: OptimizerSharding) -> None:
    """One device of four ranks, two of which share out the experts: two hold the same ones, four all else."""
    given = tiny_with_experts(sharding)
    (level,) = given.cluster.levels
    shared = replace(
        given,
        profile=replace(given.profile, graph=replace(given.profile.graph, context_parallel=4)),
        cluster=replace(given.cluster, devices=("gpu",), ranks=Ranks(count=4, levels=(level,))),
        regime=replace(given.regime, context_parallel=4),
    )
    model = CostModel(shared)
    made = list(plans(shared))
    least = min(memory_bytes(model, plan) for plan in made)
    gathered = 3 * (DENSE + EXPERTS) if sharding == "zero3" else 0
    assert least - 8 <= memory_bound(shared).value + gathered <= least + 1
    assert time_bound(shared).ns <= min(length_ns(model, plan) for plan in made)


@pytest.mark.parametrize("ranks", [2, 5, 16])
@pytest.mark.parametrize("sharding", ["none", "zero1", "zero3"])
def test_one_device_is_bounded_by_what_its_ranks_hold_and_reduce(sharding: OptimizerSharding, ranks: int) -> None:
    """Both operators on one device: the bounds say what the only plans of one stage take, but for a rounding.

    Of zero3 they leave out what is gathered, in time and in memory.
    """
    wide = tiny(sharding, ranks)
    given = replace(wide, cluster=replace(wide.cluster, devices=("gpu",)))
    model = CostModel(given)
    alone = [plan for plan in plans(given) if len(plan.stages) == 1]
    least = min(memory_bytes(model, plan) for plan in alone)
    assert least - 8 <= memory_bound(given).value + (3 * 16_000 if sharding == "zero3" else 0) <= least + 1
    shortest = min(length_ns(model, plan) for plan in alone)
    assert 0 <= shortest - time_bound(given).ns <= (shortest if sharding == "zero3" else 3)
