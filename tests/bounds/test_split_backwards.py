"""Backwards that are split: the weight gradient of one stage runs while another computes input gradients."""

from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.services import HostServices
from pipebench.bounds import time_bound
from pipebench.bounds.operators import ways
from pipebench.costs.model import CostModel
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.errors import InfeasibleProblem, PipebenchError
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.manager import Host
from pipebench.simulation.simulate import simulate
from tests.bounds.drawn_problems import problems, with_alternatives
from tests.bounds.every_plan import plans
from tests.builders import chain_problem, cluster, stages_plan
from tests.check.orders import lane
from tests.nightly import examples

SERVICES = HostServices(Host())


def with_weight_gradients(problem: Problem, shares: list[float]) -> Problem:
    """The problem with that share of each operator's backward measured apart."""
    (costs,) = problem.profile.costs
    operators = tuple(
        replace(each, weight_gradient_s=tuple(share * time_s for time_s in each.backward_s))
        for each, share in zip(costs.operators, shares, strict=False)
    )
    return replace(problem, profile=replace(problem.profile, costs=(replace(costs, operators=operators),)))


@pytest.mark.parametrize(("share", "least_ns"), [(0.0, 6000), (0.5, 5000), (1.0, 4000)])
def test_one_micro_batch_through_two_equal_layers(share: float, least_ns: int) -> None:
    """F F I I, with the weight gradient of the second layer beside the input gradient of the first."""
    whole = chain_problem([1000, 1000], [2000, 2000], cluster(2), mode="sync")
    problem = with_weight_gradients(whole, [share, share])
    plan = stages_plan([[0], [1]])
    taken_ns = simulate(problem, plan, SERVICES.schedule("greedy", problem, plan)).total_ns
    assert taken_ns == least_ns
    assert time_bound(problem).parts["path"] == taken_ns


def test_a_weight_gradient_is_at_most_its_own_backward() -> None:
    """Of one and two samples 10 and 11 ns of backward, 1 and 10 ns of weight gradient: of four 13 ns, not 28 ns.

    The input gradient of the operator beside it takes its 20 ns all the same: 1 + 2 + 20 + 100 ns.
    """
    pins = Pins(micro_batch=4, data_parallel=1)
    whole = chain_problem([1] * 3, [1] * 3, cluster(2), mode="sync", mini_batch=4, pins=pins)
    (costs,) = whole.profile.costs
    each_ns = (((100, 100), ()), ((10, 11), (1, 10)), ((20, 20), ()))
    operators = tuple(
        replace(
            costs_of,
            forward_s=(1e-9, 1e-9),
            backward_s=tuple(ns / 1e9 for ns in backward),
            weight_gradient_s=tuple(ns / 1e9 for ns in weight),
        )
        for costs_of, (backward, weight) in zip(costs.operators, each_ns, strict=True)
    )
    profile = replace(whole.profile, costs=(replace(costs, micro_batches=(1, 2), operators=operators),))
    problem, plan = replace(whole, profile=profile), stages_plan([[0], [1, 2]], micro_batch=4)
    times = CostModel(problem).stage_times(plan.stages[1])
    assert (times.backward, times.weight_gradient) == (33, 13)
    schedule = FiniteSchedule(lanes=(lane((0,), "F0.0 B0.0"), lane((1,), "F1.0 I1.0 W1.0")))
    assert time_bound(problem).ns == simulate(problem, plan, schedule).total_ns == 123


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    problems(),
    st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=3, max_size=3),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_no_plan_under_a_greedy_order_is_below_the_bound(
    problem: Problem, shares: list[float], overlap: float
) -> None:
    sync = replace(problem, regime=replace(problem.regime, mode="sync"), overlap=overlap)
    split = with_weight_gradients(sync, shares)
    try:
        bound = time_bound(split)
    except InfeasibleProblem:
        return
    for plan in islice(plans(split), 0, 200, 5):
        try:
            schedule = SERVICES.schedule("greedy", split, plan)
        except PipebenchError:
            continue
        assert bound.ns <= simulate(split, plan, schedule).total_ns, plan


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("other_ns", [1, 7, 3001])
def test_a_crossing_takes_no_longer_than_the_cost_model_says(share: float, other_ns: int) -> None:
    """Also of an alternative, whose weight gradient has the plain one's share of its backward."""
    whole = chain_problem([1000, 300], [2001, 77], cluster(2), mode="sync")
    problem = with_weight_gradients(with_alternatives(whole, other_ns, 1, 2), [share, share])
    (costs,) = problem.profile.costs
    times = OperatorTimes(costs)
    (rows,) = ways(problem)
    names = ["" if plain else "other" for plain in rows.plain]
    for operator, name, crossing_ns in zip(rows.operator, names, rows.crossing_ns(1), strict=True):
        forward, backward, weight = times.choice_ns(int(operator), name, 1)
        assert forward + backward - weight - (name != "") <= crossing_ns <= forward + backward - weight
