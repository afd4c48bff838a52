"""Memory of a stage against hand figures: model inputs, copies, unequal micro-batches, gradients, ties."""

import msgspec
import pytest

from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import Alternative
from tests.builders import chain_problem, cluster, dag_problem, stages_plan, with_model_inputs


def stages_with(plan: Plan, *changes: dict[str, object]) -> Plan:
    """The plan with those fields of its stages changed."""
    pairs = zip(plan.stages, changes, strict=True)
    return msgspec.structs.replace(plan, stages=tuple(msgspec.structs.replace(s, **c) for s, c in pairs))


def test_recomputation_keeps_the_model_inputs_that_a_stage_reads() -> None:
    """op0 and op1 read `ids` (100), op2 reads `mask` (7); 10 bytes go from stage 0 to stage 1."""
    problem = chain_problem([1] * 3, [1] * 3, cluster(2), activations=[50, 20, 10, 0], mode="sync", mini_batch=2)
    problem = with_model_inputs(problem, {"ids": ((0, 1), 100), "mask": ((2,), 7)})
    plan = stages_plan([[0, 1], [2]], micro_batch=2)
    plan = stages_with(plan, {"recompute": "stage"}, {"recompute": "stage"})
    model = CostModel(problem)
    first, second = (model.stage_memory(plan, stage, model.messages(plan)) for stage in range(2))
    assert (first.per_micro_batch, second.per_micro_batch) == (2 * 100, 2 * (10 + 7))
    assert first.while_live == 2 * (50 + 20) + 2 * 2 * 10


@pytest.mark.parametrize(("copies", "replicas"), [(1, 4), (2, 2), (4, 1)])
def test_copies_share_the_optimizer_state_as_replicas_do(copies: int, replicas: int) -> None:
    regime = Regime(mode="sync", optimizer="adam", optimizer_sharding="zero1")
    problem = chain_problem([1], [1], cluster(4), weights=[400], mode="sync", mini_batch=4)
    model = CostModel(msgspec.structs.replace(problem, regime=regime))
    plan = msgspec.structs.replace(stages_plan([[0]], micro_batch=replicas, replicas=[replicas]), copies=copies)
    assert model.stage_memory(plan, 0, []).held == 2 * 400 + 2 * 400 // 4


def two_sizes(first: int, second: int, replicas: tuple[int, int]) -> tuple[list[int], Problem, Plan]:
    """Buffers of two stages of these micro-batches; 3 bytes a sample cross."""
    problem = chain_problem([1, 1], [1, 1], cluster(8), activations=[0, 3, 0], mode="async", mini_batch=8)
    plan = stages_plan([[0], [1]], micro_batch=8, replicas=replicas)
    plan = stages_with(plan, {"micro_batch": first}, {"micro_batch": second})
    model = CostModel(problem)
    return [model.stage_memory(plan, s, model.messages(plan)).held for s in range(2)], problem, plan


@pytest.mark.parametrize(
    ("first", "second", "replicas", "expected"),
    [
        (4, 4, (1, 1), [3 * (4 + 4), 3 * (4 + 4)]),
        (8, 2, (1, 1), [3 * (8 + 2), 3 * (8 + 2)]),
        (2, 8, (1, 1), [3 * (2 + 8), 3 * (2 + 8)]),
        (8, 4, (2, 4), [3 * (4 + 2), 3 * (2 + 1)]),
        (8, 4, (3, 3), [3 * (3 + 2), 3 * (3 + 2)]),
    ],
)
def test_buffers_hold_messages_of_the_sender_on_both_sides(
    first: int, second: int, replicas: tuple[int, int], expected: list[int]
) -> None:
    assert two_sizes(first, second, replicas)[0] == expected


def test_one_gradient_buffer_serves_consumers_of_different_micro_batches() -> None:
    problem = dag_problem([1] * 3, [1] * 3, [(0, (1, 2), 3)], cluster(3), mode="async", mini_batch=8)
    plan = stages_with(stages_plan([[0], [1], [2]]), {"micro_batch": 4}, {"micro_batch": 8}, {"micro_batch": 2})
    model = CostModel(problem)
    held = [model.stage_memory(plan, s, model.messages(plan)).held for s in range(3)]
    assert held == [3 * (4 + 8), 3 * (4 + 8), 3 * (4 + 2)]


def test_gradients_have_their_own_precision() -> None:
    """Mixed precision with Adam: 2 + 4 + 12 bytes a parameter; without a master gradient 2 + 2 + 12."""
    mixed = Regime(mode="sync", precision="bf16", gradient_precision="fp32", optimizer="adam")
    assert Formula(mixed, 8).state_bytes(2 * 1000, 1) == 18 * 1000
    assert (
        Formula(msgspec.structs.replace(mixed, gradient_precision=None), 8).state_bytes(2 * 1000, 1) == 16 * 1000
    )
    assert Formula(msgspec.structs.replace(mixed, mode="async"), 8).state_bytes(2 * 1000, 1) == 20 * 1000
    sharded = msgspec.structs.replace(mixed, optimizer_sharding="zero1")
    assert Formula(sharded, 8).state_bytes(2 * 1000, 8) == 6 * 1000 + 12 * 1000 // 8


@pytest.mark.parametrize(("choice", "expected"), [(("", ""), 100), (("a", "a"), 40), (("a", "b"), 60)])
def test_operators_tied_under_alternatives_hold_the_weights_once(choice: tuple[str, str], expected: int) -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(1), weights=[100, 0], mode="sync")
    profile = problem.profile
    tied = tuple(msgspec.structs.replace(op, parameters=("w0",)) for op in profile.graph.operators)
    ways = tuple(
        Alternative(id=i, forward_s=(1e-9,), backward_s=(1e-9,), parameter_bytes=size, saved_bytes_per_sample=0.0)
        for i, size in (("a", 40), ("b", 60))
    )
    costs = profile.costs[0]
    costs = msgspec.structs.replace(
        costs, operators=tuple(msgspec.structs.replace(each, alternatives=ways) for each in costs.operators)
    )
    graph = msgspec.structs.replace(profile.graph, operators=tied)
    problem = msgspec.structs.replace(
        problem, profile=msgspec.structs.replace(profile, graph=graph, costs=(costs,))
    )
    stage = msgspec.structs.replace(stages_plan([[0, 1]]).stages[0], choice=choice)
    assert CostModel(problem).parameter_bytes(stage) == expected
