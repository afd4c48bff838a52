"""Bounds of problems in which a framework's step is priced, where the update is most of the time."""

import msgspec
import pytest

from pipebench.bounds import time_bound
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.framework import StepCosts
from pipebench.domain.problem import Pins, Problem
from tests.bounds.every_plan import length_ns, plans
from tests.builders import chain_problem, cluster

NODES = (
    LinkLevel(name="node", group=2, bandwidth_bytes_s=8e9),
    LinkLevel(name="network", group=4, bandwidth_bytes_s=1e9),
)


def reduced(*, optimizer_s: float = 0.0, overlap: float = 0.0, spread: bool = True) -> Problem:
    """One operator on 4 devices of 2 nodes, a replica on each: 1,000 bytes of gradients against 6 ns of work."""
    on = msgspec.structs.replace(cluster(4), levels=NODES)
    problem = chain_problem([2], [4], on, weights=[1000], mode="sync", mini_batch=4, pins=Pins(data_parallel=4))
    step = StepCosts(
        framework="made", optimizer_s_per_element=optimizer_s, reduce_overlap=overlap, spreads_rings=spread
    )
    return msgspec.structs.replace(problem, regime=msgspec.structs.replace(problem.regime, step=step))


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize("overlap", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("optimizer_s", [0.0, 2e-9])
def test_the_bound_is_the_best_plan_where_the_update_decides(
    spread: bool, overlap: float, optimizer_s: float
) -> None:
    """2 (4 - 1) steps of 250 bytes; over the links of both members of a node in half the time."""
    problem = reduced(optimizer_s=optimizer_s, overlap=overlap, spread=spread)
    model = CostModel(problem)
    best_ns = min(length_ns(model, plan) for plan in plans(problem))
    rate = 2 if spread else 1
    expected_ns = 6 + 1500 // rate - round(overlap * 1500 / rate) + round(250 * optimizer_s * 1e9)
    assert time_bound(problem).ns == best_ns == expected_ns


def test_more_replicas_than_samples_share_the_optimizer() -> None:
    """Two replicas in turn, one of which never runs: each updates half of 250 elements at 4 ns."""
    problem = chain_problem([0], [0], cluster(2, bandwidth=1e15), weights=[1000], mode="sync", mini_batch=1)
    step = StepCosts(framework="made", optimizer_s_per_element=4e-9)
    regime = msgspec.structs.replace(problem.regime, step=step, optimizer_sharding="zero1")
    problem = msgspec.structs.replace(problem, regime=regime)
    model = CostModel(problem)
    assert time_bound(problem).ns == min(length_ns(model, plan) for plan in plans(problem)) == 500
