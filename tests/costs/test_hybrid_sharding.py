"""Groups of ranks that share out a copy each (hybrid sharding): closed forms, and what is refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import memory_bound, time_bound
from pipebench.bounds.choices import additive_update_ns
from pipebench.bounds.memory import parameter_bytes_counted
from pipebench.bounds.operators import ways
from pipebench.check import check_plan
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.framework import StepCosts
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import OptimizerSharding, Pins, Problem, Regime
from tests.bounds.every_plan import length_ns, memory_bytes, plans
from tests.builders import chain_problem, cluster

NODE = LinkLevel(name="node", group=4, bandwidth_bytes_s=1e9)
NET = LinkLevel(name="net", group=16, bandwidth_bytes_s=1e8)
WEIGHTS = 1200
GATHERED = 3 * WEIGHTS // 4
"""Of 1,200 bytes over four ranks of a node at a byte a nanosecond: each sends three quarters, in ns."""
BETWEEN = 10 * WEIGHTS // 4
"""An all-reduce of a quarter of the gradients between two nodes at a tenth of a byte a nanosecond, in ns."""


def problem(sharding: OptimizerSharding, ranks: int, devices: int = 8, **regime: object) -> Problem:
    made = chain_problem([100], [200], cluster(devices), weights=[WEIGHTS], mini_batch=24)
    return replace(
        made,
        cluster=replace(made.cluster, levels=(NODE, NET)),
        regime=Regime(
            mode="sync",
            optimizer="adam",
            optimizer_sharding=sharding,
            sharding_ranks=ranks,
            **regime,  # type: ignore[arg-type]
        ),
    )


def step(**costs: float | bool) -> StepCosts:
    return StepCosts(**({"framework": "made", "optimizer_s_per_element": 0.0} | costs))  # type: ignore[arg-type]


def stage(replicas: int, tensor: int = 1) -> Stage:
    return Stage(
        operators=("op0",),
        devices=tuple(range(replicas * tensor)),
        data_parallel=replicas,
        tensor_parallel=tensor,
        micro_batch=replicas,
    )


def test_weights_are_gathered_inside_a_group() -> None:
    """The backward gathers again, scatters, and reduces each rank's share with the other group."""
    times = CostModel(problem("zero3", 4)).stage_times(stage(8))
    assert (times.forward, times.backward, times.all_reduce) == (GATHERED, 2 * GATHERED + BETWEEN, 0)
    whole = CostModel(problem("zero3", 8)).stage_times(stage(8))
    assert whole.forward == 10 * 7 * WEIGHTS // 8
    assert whole == CostModel(problem("zero3", 100)).stage_times(stage(8))


def test_gradients_are_reduced_inside_a_group_and_between_groups() -> None:
    assert CostModel(problem("zero1", 4)).stage_times(stage(8)).all_reduce == 2 * GATHERED + BETWEEN
    assert CostModel(problem("zero1", 4)).stage_times(stage(4)).all_reduce == 2 * GATHERED


def test_a_step_reduces_shares_at_the_precision_of_gradients() -> None:
    """bf16 weights, fp32 gradients: inside 3/4 of 2,400 bytes there and 1,200 back, between 600 bytes."""
    made = problem("zero1", 4)
    regime = replace(
        made.regime,
        precision="bf16",
        gradient_precision="fp32",
        step=StepCosts(framework="made", optimizer_s_per_element=0.0),
    )
    made = replace(made, profile=replace(made.profile, precision="bf16"), regime=regime)
    assert CostModel(made).stage_times(stage(8)).all_reduce == 3 * (2400 + 1200) // 4 + 2 * BETWEEN


def test_a_device_holds_its_share_of_its_groups_copy() -> None:
    """fp32: weights and gradients of 4 bytes each, 8 of Adam's state for each element."""
    for ranks, held in ((4, 2 * WEIGHTS + 2 * WEIGHTS // 4), (8, 2 * WEIGHTS + 2 * WEIGHTS // 8)):
        model = CostModel(problem("zero1", ranks))
        assert model.stage_memory(Plan(stages=(stage(8),)), 0, []).held == held
    model = CostModel(problem("zero3", 4))
    assert model.stage_memory(Plan(stages=(stage(8),)), 0, []).held == 4 * WEIGHTS // 4


def test_the_optimizer_passes_over_a_share_of_a_group() -> None:
    made = problem("zero1", 4, step=step(optimizer_s_per_element=8e-9, reduce_overlap=1.0))
    assert CostModel(made).update_ns(stage(8)) == 8 * (WEIGHTS // 4) // 4


def test_copies_of_a_pipeline_are_groups() -> None:
    """Two copies of four replicas, one in each node."""
    plan = Plan(stages=(stage(4),), copies=2)
    assert CostModel(problem("zero1", 4)).stage_times(plan.stages[0], plan).all_reduce == 2 * GATHERED + BETWEEN


def test_a_group_of_two_nodes_has_their_links() -> None:
    """Tensor parallelism of two: a ring of four ranks spans eight devices, as many rings as ranks run at once."""
    times = CostModel(problem("zero3", 4, devices=16)).stage_times(stage(8, tensor=2))
    assert times.forward == 10 * GATHERED


@pytest.mark.parametrize(("replicas", "status"), [(2, "valid"), (4, "valid"), (6, "invalid"), (8, "valid")])
def test_replicas_make_whole_groups_or_one(replicas: int, status: str) -> None:
    verdict = check_plan(problem("zero1", 4), Plan(stages=(stage(replicas),)))
    assert verdict.status == status
    if verdict.witness is not None:
        assert "6 replicas, which is no multiple of the 4 ranks that share out a copy" in verdict.witness.message


def test_pinned_replicas_that_make_no_whole_groups_are_refused() -> None:
    with pytest.raises(InvalidValue, match="the pinned data_parallel 6 is no multiple of 4") as refused:
        replace(problem("zero1", 4), pins=Pins(data_parallel=6))
    assert refused.value.hint == "--dp 4, or --sharding-ranks 2"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"optimizer_sharding": "none"}, "nothing is shared out"),
        ({"optimizer_sharding": "zero1", "expert_parallel": 2}, "the suite prices one of both"),
        ({"optimizer_sharding": "zero1", "context_parallel": 3}, "a multiple of the 3 ranks"),
    ],
)
def test_groups_that_the_regime_cannot_have(said: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        Regime(mode="sync", sharding_ranks=4, **said)  # type: ignore[arg-type]


@pytest.mark.parametrize("sharding", ["zero1", "zero3"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_no_plan_is_below_the_bounds(sharding: OptimizerSharding, ranks: int) -> None:
    """Six devices in nodes of two; every plan, those of uneven groups left out."""
    made = problem(sharding, ranks, devices=6)
    levels = (replace(NODE, group=2), replace(NET, group=6))
    made = replace(made, mini_batch=6, cluster=replace(made.cluster, levels=levels))
    model = CostModel(made)
    valid = [plan for plan in plans(made) if check_plan(made, plan).status == "valid"]
    assert len(valid) > 5
    assert time_bound(made).ns <= min(length_ns(model, plan) for plan in valid)
    assert memory_bound(made).value <= min(memory_bytes(model, plan) for plan in valid)


def test_pinned_replicas_hold_a_copy_for_each_group() -> None:
    """The bound on memory is what each of eight devices holds, with a quarter or an eighth of the state."""
    for ranks in (4, 8):
        made = replace(problem("zero1", ranks), pins=Pins(data_parallel=8))
        assert memory_bound(made).value == 2 * WEIGHTS + 2 * WEIGHTS // ranks


@pytest.mark.parametrize("spread", [True, False])
def test_the_bound_is_the_plan_where_reducing_decides(spread: bool) -> None:
    """Inside a node 3/4 of the bytes twice; between nodes a quarter, over the links of all four or over one."""
    made = problem("zero1", 4, step=step(spreads_rings=spread))
    made = replace(made, mini_batch=8, pins=Pins(data_parallel=8))
    expected_ns = 300 + 2 * GATHERED + BETWEEN
    assert time_bound(made).ns == expected_ns
    assert min(length_ns(CostModel(made), plan) for plan in plans(made)) == expected_ns


@given(st.lists(st.integers(0, 30), min_size=3, max_size=3), st.sampled_from([(2e9, 1e9), (3e9, 3e9), (7e8, 9e8)]))
@example([3, 3, 3], (2e9, 1e9))
def test_shares_of_an_update_add_up_to_at_most_the_update(weights: list[int], rates: tuple[float, float]) -> None:
    """Each part is rounded, inside a group and between groups: 1.5 ns to 2, 4.5 of the three together to 4."""
    made = chain_problem([1, 1, 1], [1, 1, 1], cluster(4), weights=weights, mini_batch=4)
    levels = tuple(
        LinkLevel(name=f"level {group}", group=group, bandwidth_bytes_s=rate)
        for group, rate in zip((2, 4), rates, strict=True)
    )
    regime = Regime(mode="sync", optimizer_sharding="zero1", sharding_ranks=2)
    made = replace(made, cluster=replace(made.cluster, levels=levels), regime=regime)
    (rows,) = ways(made)
    shares = additive_update_ns(made, rows, *parameter_bytes_counted(made.profile.graph, rows), 4)
    whole = Stage(operators=("op0", "op1", "op2"), devices=(0, 1, 2, 3), data_parallel=4, micro_batch=4)
    assert shares.sum() <= CostModel(made).update_ns(whole)
