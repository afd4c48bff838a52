"""Costs of plans of several pipelines: messages inside each, one all-reduce over all, shared optimizer state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.costs.estimate import estimate
from pipebench.costs.formula import Formula
from pipebench.costs.links import flows
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Regime
from tests.builders import chain_problem, cluster, mirrored_plan, stages_plan

FOUR = chain_problem(
    [1, 2, 3, 4], [2, 4, 6, 8], cluster(8), activations=[0, 10, 20, 30, 0], weights=[400, 300, 200, 100],
    saved=[5, 6, 7, 8], mode="sync", mini_batch=8,
)  # fmt: skip
MIRRORED = mirrored_plan([[0], [1], [2], [3]])


def test_messages_stay_inside_a_pipeline() -> None:
    crossing = [(m.source, m.target) for m in CostModel(FOUR).messages(MIRRORED)]
    assert crossing == [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)]
    relay = replace(MIRRORED, routing="relay")
    assert [(m.source, m.target) for m in CostModel(FOUR).messages(relay)] == crossing


def test_the_two_directions_share_lanes_and_links() -> None:
    lanes, lane_of = lanes_of(MIRRORED)
    assert (lanes, lane_of) == ([(0,), (1,), (2,), (3,)], [0, 1, 2, 3, 3, 2, 1, 0])
    found = flows(CostModel(FOUR), MIRRORED)
    assert {flow.link for flow in found} == {(0, 1), (1, 2), (2, 3)}
    assert len(found) == 12


@pytest.mark.parametrize(("replicas", "copies"), [(1, 1), (2, 1), (1, 2)])
def test_mirrors_reduce_together_on_the_level_that_spans_them(replicas: int, copies: int) -> None:
    """A node of two devices at 8 bytes a ns, nodes at one: stages 0 and 3 of four span all nodes, 1 and 2 too."""
    levels = (
        LinkLevel(name="node", group=2, bandwidth_bytes_s=8e9),
        LinkLevel(name="net", group=8, bandwidth_bytes_s=1e9),
    )
    problem = replace(FOUR, cluster=replace(FOUR.cluster, levels=levels))
    plan = mirrored_plan([[0], [1], [2], [3]], micro_batch=replicas, replicas=replicas, copies=copies)
    model = CostModel(problem)
    total = 2 * replicas * copies
    for position, weights in enumerate((400, 300, 200, 100)):
        expected = round(2 * (total - 1) * weights / total)
        for mirror in plan.mirrors(position):
            assert model.stage_times(plan.stages[mirror], plan).all_reduce == expected
    # Two stages on two devices: both mirrors stand in one node.
    near = mirrored_plan([[0, 1], [2, 3]])
    assert model.stage_times(near.stages[0], near).all_reduce == round(2 * 700 / 2 / 8)


def test_mirrors_share_the_optimizer_state_as_replicas_do() -> None:
    regime = Regime(mode="sync", optimizer="adam", optimizer_sharding="zero1")
    model = CostModel(replace(FOUR, regime=regime))
    edges = model.messages(MIRRORED)
    for position, weights in enumerate((400, 300, 200, 100)):
        for mirror in MIRRORED.mirrors(position):
            memory = model.stage_memory(MIRRORED, mirror, edges)
            assert memory.held == 2 * weights + 2 * weights // 2
            assert memory.per_micro_batch == 5 + position


def test_the_estimate_of_a_mirrored_plan_counts_both_stages_of_a_lane() -> None:
    problem = chain_problem([3, 3], [6, 6], cluster(2), mode="sync", mini_batch=8)
    # Each direction runs 4 micro-batches: 3 periods of two stages of 9 ns in a lane, then the path of 18 ns.
    assert estimate(problem, mirrored_plan([[0], [1]])) == 3 * 18 + 18
    assert estimate(problem, replace(stages_plan([[0], [1]]), copies=1)) == 7 * 9 + 18


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.floats(0, 1))
def test_a_pair_lasts_between_its_longer_task_and_both(forward: int, backward: int, overlap: float) -> None:
    (pair,) = Formula.pair_ns(np.array([forward]), np.array([backward]), overlap).tolist()
    assert max(forward, backward) <= pair <= forward + backward


def test_the_hidden_part_of_a_pair_is_rounded_half_even() -> None:
    forward, backward = np.array([5, 7, 8, 8]), np.array([9, 9, 3, 20])
    assert Formula.pair_ns(forward, backward, 0.0).tolist() == [14, 16, 11, 28]
    assert Formula.pair_ns(forward, backward, 0.5).tolist() == [14 - 2, 16 - 4, 11 - 2, 28 - 4]
    assert Formula.pair_ns(forward, backward, 1.0).tolist() == [9, 9, 8, 20]
