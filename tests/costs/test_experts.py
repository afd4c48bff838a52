"""Ranks that share out experts: state, reduction and update of a stage by hand; nothing changes without them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.shapes.experts import expert_counts, refuse_expert_ranks, with_expert_ranks
from pipebench.costs.shapes.transformer import layer_shape
from pipebench.costs.weights import state_bytes, unit_bytes, update_ns, weight_parts
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.framework import StepCosts
from pipebench.domain.graph import Operator, OperatorGraph, Parameter
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import OptimizerSharding, Pins, Problem, Regime
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from tests.models.zoo import model

DENSE, EXPERTS = 4_000, 12_000
"""Bytes of fp32 weights on one device: those that replicas hold alike, and those of its experts."""


def regime(ranks: int, sharding: OptimizerSharding = "none", step: StepCosts | None = None) -> Regime:
    return Regime(mode="sync", optimizer="adam", optimizer_sharding=sharding, step=step, expert_parallel=ranks)


def one_layer(ranks: int, sharding: OptimizerSharding = "none", step: StepCosts | None = None) -> Problem:
    """One operator with experts, plain and over two devices, on eight devices of one level of 1 GB/s."""
    split = Alternative(
        id="tp2",
        tensor_parallel=2,
        forward_s=(1e-3,),
        backward_s=(2e-3,),
        parameter_bytes=DENSE // 2 + EXPERTS,
        expert_bytes=EXPERTS,
        saved_bytes_per_sample=0.0,
    )
    costs = OperatorCosts(operator="layer", forward_s=(1e-3,), backward_s=(2e-3,), alternatives=(split,))
    shared = EXPERTS if ranks > 1 else 0
    split_alike = split if shared else replace(split, expert_bytes=0)
    return Problem(
        profile=Profile(
            name="one layer",
            graph=OperatorGraph(
                name="one layer",
                operators=(Operator(name="layer", kind="op", parameters=("w",)),),
                parameters=(Parameter(name="w", bytes=DENSE + EXPERTS, expert_bytes=shared),),
            ),
            costs=(
                DeviceCosts(
                    device_type="gpu",
                    micro_batches=(1,),
                    operators=(replace(costs, alternatives=(split_alike,)),),
                ),
            ),
        ),
        cluster=Cluster(
            name="eight",
            types=(DeviceType(name="gpu", memory_bytes=10**9),),
            devices=("gpu",) * 8,
            levels=(LinkLevel(name="link", group=8, bandwidth_bytes_s=1e9),),
        ),
        mini_batch=8,
        regime=regime(ranks, sharding, step),
    )


def one_stage(data_parallel: int, tensor_parallel: int = 1) -> Plan:
    return Plan(
        stages=(
            Stage(
                operators=("layer",),
                devices=tuple(range(data_parallel * tensor_parallel)),
                data_parallel=data_parallel,
                tensor_parallel=tensor_parallel,
                micro_batch=data_parallel,
                choice=("tp2" if tensor_parallel == 2 else "",),
            ),
        )
    )


@pytest.mark.parametrize(
    ("sharding", "alike", "of_experts"),
    [
        # weights + gradients + Adam's 8 bytes for each element of 4; 8 replicas, 8 / 4 = 2 ranks hold one expert
        ("none", 2 * DENSE + 2 * DENSE, 2 * EXPERTS + 2 * EXPERTS),
        ("zero1", 2 * DENSE + 2 * DENSE // 8, 2 * EXPERTS + 2 * EXPERTS // 2),
        ("zero3", 4 * DENSE // 8, 4 * EXPERTS // 2),
    ],
)
def test_the_state_of_a_stage_by_hand(sharding: OptimizerSharding, alike: int, of_experts: int) -> None:
    made, plan = CostModel(one_layer(4, sharding)), one_stage(8)
    assert made.stage_memory(plan, 0, []).held == alike + of_experts


def test_tensor_parallel_ranks_share_out_experts_too() -> None:
    """4 replicas of 2 ranks, 4 of which share out the experts: two hold the same, and all else is split."""
    made, plan = CostModel(one_layer(4, "zero1")), one_stage(4, 2)
    dense = DENSE // 2
    assert made.stage_memory(plan, 0, []).held == 2 * dense + 2 * dense // 4 + 2 * EXPERTS + 2 * EXPERTS // 2


def test_gradients_are_reduced_on_two_rings() -> None:
    """2 (d - 1) / d of 4000 bytes among 8 replicas, and of 12000 among the two that hold the same experts."""
    made, plan = CostModel(one_layer(4)), one_stage(8)
    assert made.all_reduce_ns(plan.stages[0], plan) == 2 * 7 * 4_000 // 8 + 2 * 1 * 12_000 // 2
    alone = one_stage(4)
    assert made.all_reduce_ns(alone.stages[0], alone) == 2 * 3 * 4_000 // 4  # no two hold the same experts


def test_copies_of_the_pipeline_hold_the_same_experts_again() -> None:
    made = CostModel(one_layer(4))
    plan = replace(one_stage(4), copies=2)
    assert made.all_reduce_ns(plan.stages[0], plan) == 2 * 7 * 4_000 // 8 + 2 * 1 * 12_000 // 2


def test_what_replicas_exchange_is_gathered_in_two_groups() -> None:
    """zero3: half a ring of each part forward, all gathered again and scattered backward."""
    made, plan = CostModel(one_layer(4, "zero3")), one_stage(8)
    gathered = 7 * 4_000 // 8 + 1 * 12_000 // 2
    assert made.exposed_exchange_ns(plan.stages[0], plan) == (0, 0)
    assert made._exchange_ns(plan.stages[0], plan) == (gathered, 2 * gathered)
    assert made.stage_memory(plan, 0, []).workspace == 3 * (DENSE + EXPERTS)  # this operator, the next, a gradient


def test_the_optimizer_updates_what_a_rank_holds_of_each_part() -> None:
    step = StepCosts(framework="drawn", optimizer_s_per_element=8e-9, gradient_s_per_element=1e-9)
    made, plan = CostModel(one_layer(4, "zero1", step)), one_stage(8)
    reduced = made.all_reduce_ns(plan.stages[0], plan)
    # 1000 elements at 8/8 + 1 ns, 3000 at 8/2 + 1 ns
    assert made.update_ns(plan.stages[0], plan) == reduced + 1_000 * 2 + 3_000 * 5


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 10**7),
    st.integers(1, 64),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["none", "zero1", "zero3"]),
)
def test_one_rank_is_the_model_without_experts(
    weights: int, replicas: int, tensor: int, sharding: OptimizerSharding
) -> None:
    formula = Formula(regime(1, sharding), 8)
    parts = weight_parts(formula.regime, weights, 0, replicas, tensor)
    assert len(parts) == 1
    assert state_bytes(formula, parts) == formula.state_bytes(weights, replicas)
    assert update_ns(formula, 7, parts) == formula.update_ns(7, weights, replicas)
    assert unit_bytes(parts) == (weights if replicas > 1 else 0)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["none", "zero1", "zero3"]),
)
def test_no_rank_holds_more_where_more_share_experts(
    dense: int, experts: int, ranks: int, sharding: OptimizerSharding
) -> None:
    """16 replicas; a model of 16 experts of so many elements. Sharding shares out as much without."""
    held = []
    for degree in (ranks, 2 * ranks):
        formula = Formula(regime(degree, sharding), 8)
        mine = 4 * experts * 16 // degree
        parts = weight_parts(formula.regime, 4 * dense + mine, mine, 16, 1)
        held.append(state_bytes(formula, parts))
    assert held[1] <= held[0] + 1  # each part is rounded up to whole bytes


def test_a_rank_holds_a_part_of_the_experts_and_all_else() -> None:
    """Qwen3-30B-A3B: 128 experts of 3 x 2048 x 768, 18.87 M other elements a layer."""
    graph = model(
        "llm", architecture="mixtral", layers=2, hidden=2048, heads=32, kv_heads=4, head=128, ffn=768, vocab=1000,
        sequence=128, experts=128, active=8, head_norm=True,
    )  # fmt: skip
    attention = 2048 * (4096 + 2 * 512) + 4096 * 2048
    others = attention + 2048 * 128 + 2 * 2048 + 2 * 128
    shape = layer_shape(graph.operators[1])
    assert shape.expert_weights == 128 * 3 * 2048 * 768
    assert shape.weights() == others + shape.expert_weights
    assert shape.weights(1, 8) == others + 16 * 3 * 2048 * 768
    assert shape.weights(4, 8) == attention // 4 + 2048 * 128 + 2 * 2048 + 2 * 128 + 16 * 3 * 2048 * 768
    shared = with_expert_ranks(graph, 8, 2)
    (name,) = graph.operators[1].parameters
    assert shared.expert_bytes[name] == 2 * 16 * 3 * 2048 * 768
    assert shared.parameter_bytes[name] == 2 * shape.weights(1, 8)
    assert shared.parameter_bytes["embedding.table"] == graph.parameter_bytes["embedding.table"]
    assert with_expert_ranks(graph, 1, 2) is graph
    assert expert_counts(graph) == [128, 128]


@pytest.mark.parametrize(
    ("ranks", "devices", "pins", "why", "nearest"),
    [
        (3, 8, Pins(), "does not divide the 8 experts of a layer of llm", "1, 2, 4"),
        (16, 32, Pins(), "does not divide the 8 experts", "2, 4, 8"),
        (8, 4, Pins(), "a stage has at most 4 ranks of 4 devices", "1, 2, 4"),
        (8, 8, Pins(pipeline=2), "a stage has at most 7 ranks of 8 devices in 2 stages", "1, 2, 4"),
        (8, 16, Pins(tensor_parallel=2, data_parallel=2), "--tp 2 x --dp 2 make 4 ranks of a stage", "1, 2, 4"),
    ],
)
def test_a_wrong_number_of_ranks_is_refused_with_the_nearest(
    ranks: int, devices: int, pins: Pins, why: str, nearest: str
) -> None:
    graph = model(
        "llm", architecture="mixtral", layers=2, hidden=64, heads=4, ffn=128, vocab=100, sequence=16, experts=8,
        active=2,
    )  # fmt: skip
    with pytest.raises(InvalidValue) as refused:
        refuse_expert_ranks(graph, ranks, devices, pins, "llm")
    assert why in refused.value.message
    assert refused.value.hint == f"the nearest valid: --ep {nearest}"


def test_the_regime_and_the_profile_go_together() -> None:
    given = one_layer(4)
    with pytest.raises(InvalidValue, match="is of experts that ranks share out, the regime says of no such ranks"):
        replace(given, regime=regime(1))
    with pytest.raises(InvalidValue, match="expert_parallel is 4, profile 'one layer' has no experts that ranks"):
        replace(one_layer(1), regime=regime(4))
    assert regime(1) == Regime(mode="sync", optimizer="adam")
