"""The tables of all intervals say what the cost model says of each stage."""

from itertools import pairwise, product

import msgspec
import pytest

from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import Problem, Regime
from pipebench_pipedream.intervals import IntervalCosts
from pipebench_pipedream.order import linear_order
from pipebench_pipedream.planner import replica_choices
from tests.builders import cluster
from tests.nightly import mostly_at_night
from tests.plugins.pipedream.brute_force import random_problem, stage_costs

REGIMES = [
    Regime(mode="sync"),
    Regime(mode="async"),
    Regime(mode="sync", optimizer="adam", optimizer_sharding="zero1"),
    Regime(mode="async", optimizer="sgd"),
    Regime(mode="sync", optimizer="adam", optimizer_sharding="zero3"),
    Regime(mode="async", optimizer="adam", optimizer_sharding="zero3"),
]


def with_extras(problem: Problem, regime: Regime) -> Problem:
    """The problem with a workspace on each operator, a parameter that two of them share, that regime."""
    operators = [
        msgspec.structs.replace(op, parameters=(*op.parameters, "tied")) if i in (0, 2) else op
        for i, op in enumerate(problem.profile.graph.operators)
    ]
    tied = type(problem.profile.graph.parameters[0])(name="tied", bytes=101)
    graph = msgspec.structs.replace(
        problem.profile.graph,
        operators=tuple(operators),
        parameters=(*problem.profile.graph.parameters, tied),
    )
    device = problem.profile.costs[0]
    costs = tuple(
        msgspec.structs.replace(c, workspace_bytes=7 * (5 * i % 3)) for i, c in enumerate(device.operators)
    )
    profile = msgspec.structs.replace(
        problem.profile, graph=graph, costs=(msgspec.structs.replace(device, operators=costs),)
    )
    return msgspec.structs.replace(problem, profile=profile, regime=regime)


@pytest.mark.parametrize(
    "regime", REGIMES, ids=["sync", "async", "adam-zero1", "async-sgd", "adam-zero3", "async-zero3"]
)
@pytest.mark.parametrize("shared", ["round_robin", "split"])
@pytest.mark.parametrize("seed", mostly_at_night(range(6), range(2)))
def test_every_interval_costs_what_the_cost_model_says(seed: int, shared: ReplicaMode, regime: Regime) -> None:
    micro_batch = 6 if seed % 2 else 4
    # Three stages of four replicas at most: the interval and what lies on either side of it.
    on = cluster(12, latency_s=3e-9, bandwidth=0.7e9)
    slower = msgspec.structs.replace(on.levels[0], shared_bandwidth_bytes_s=0.4e9)
    on = msgspec.structs.replace(on, levels=(slower,)) if seed % 2 else on
    problem = with_extras(random_problem(seed, regime.mode, 12, micro_batch, on=on), regime)
    order = linear_order(problem.profile.graph, "branch")
    problem = msgspec.structs.replace(problem, mini_batch=12 * micro_batch)
    replicas = [d for d in replica_choices(problem, micro_batch, mode=shared) if d <= 4]
    costs = IntervalCosts(problem, order, replicas, shared)
    period, cuts = costs.period_ns(micro_batch), costs.cut_times(micro_batch)
    n = len(order)
    for choice, d in enumerate(replicas):
        for i in range(n):
            for j in range(i + 1, n + 1):
                bounds = sorted({0, i, j, n})
                groups = [order[a:b] for a, b in pairwise(bounds)]
                found = stage_costs(problem, groups, [d] * len(groups), micro_batch, shared)
                at = bounds.index(i)
                memory = found.memory[at]
                assert period[choice, i, j] == found.periods[at]
                for live in (1, 2, 3):
                    peak = memory.peak(live)
                    assert costs.live_micro_batches(micro_batch, peak)[choice, i, j] >= live
                    assert costs.live_micro_batches(micro_batch, peak - 1)[choice, i, j] < live
    rows = {(a, b): row for a, b, row in cuts.pairs.tolist()}
    for (one, before), (other, behind) in product(enumerate(replicas), repeat=2):
        for i in range(1, n):
            found = stage_costs(problem, [order[:i], order[i:]], [before, behind], micro_batch, shared)
            assert cuts.rows[rows[cuts.kind[one], cuts.kind[other]], i] == found.cuts[1]
