"""What a certificate says is what the simulator, the check and the bounds say, on drawn problems of every kind."""

import json

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import time_bound
from pipebench.certificates.check import Proven, check
from pipebench.certificates.write import certificate, time_ns
from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.costs.sharded_stage import is_sharded
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.schedule import Schedule
from pipebench.simulation.simulate import simulate
from tests.bounds import every_plan
from tests.bounds.drawn_problems import problems
from tests.builders import chain_problem, cluster, stages_plan
from tests.certificates.made import of_case, valid_cases
from tests.nightly import examples
from tests.plugins.running import services
from tests.plugins.schedules.test_chimera import mirrored
from tests.plugins.schedules.test_greedy import split
from tests.plugins.schedules.test_virtual_stages import shared
from tests.simulation.random_plans import executable_schedules, planned_problems
from tests.simulation.test_periodic import chain, pattern, with_ports
from tests.simulation.test_round_robin import planned


def certified(problem: Problem, plan: Plan, schedule: Schedule) -> Proven:
    """The certificate's proof, which must be that of the simulator, the check and the bounds."""
    made = certificate(problem, plan, schedule, {})
    proven = check(made.data)
    assert proven.time_ns == time_ns(problem, plan, simulate(problem, plan, schedule))
    split = any(is_sharded(stage) for stage in plan.stages)
    assert proven.bound_ns == time_bound(problem, split).ns
    verdict = check_schedule(problem, plan, schedule)
    assert proven.tight == (verdict.fit == "tight")
    return proven


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_forward_that_waits_for_weights_and_runs_again(share: float) -> None:
    """Two replicas gather 200 bytes in 100 ns beside 1 ns of computation; the backward, 301 ns, does not wait.

    share: of the backward that is its weight gradient, up to the 300 ns that do not run again.
    """
    regime = Regime(mode="sync", optimizer_sharding="zero3", gradient_precision="bf16")
    problem = replace(
        chain_problem([1], [300], cluster(2), weights=[200], mode="sync", mini_batch=2), regime=regime
    )
    problem = split(problem, share) if share else problem
    (stage,) = stages_plan([[0]], micro_batch=2, replicas=[2]).stages
    plan = Plan(stages=(replace(stage, recompute="stage"),))
    assert certified(problem, plan, services().schedule("1f1b", problem, plan)).time_ns == 100 + 301


@pytest.mark.parametrize("name", valid_cases())
def test_golden_plans(name: str) -> None:
    """Recomputation, pairs in both directions, split operators, relays, a V, patterns, an async order."""
    case = valid_cases()[name]
    assert case.schedule is not None
    certified(case.problem, case.plan, case.schedule)


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_finite_schedule(data: st.DataObject) -> None:
    """Any graph, mixed micro-batches, replicas in turn, shared devices, pairs, pipelines, ports."""
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan))
    assume(check_schedule(problem, plan, schedule).status == "valid")
    certified(problem, plan, schedule)


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(planned())
def test_periodic_schedules_of_replicas_in_turn(drawn: tuple[Problem, Plan]) -> None:
    problem, plan = drawn
    schedule = services().schedule("1f1b-rr", problem, plan)
    assume(check_schedule(problem, plan, schedule).status == "valid")
    assume(simulate(problem, plan, schedule).period_ns)
    certified(problem, plan, schedule)


@st.composite
def a_plan(draw: st.DrawFn, problem: Problem) -> Plan | None:
    """A valid plan that honours the pins, or None."""
    names = [operator.name for operator in problem.profile.graph.operators]
    kept = {each.operator: ["", *(a.id for a in each.alternatives)] for each in problem.profile.costs[0].operators}
    groups = draw(st.sampled_from(list(every_plan.partitions(names))))
    copies = draw(st.integers(1, problem.cluster.size))
    size = problem.cluster.size // copies
    stages = [draw(st.sampled_from(list(every_plan.stages(problem, group, kept, size, True)))) for group in groups]
    plan = every_plan.placed(tuple(stages), copies, problem.cluster.size)
    if plan is None or check_plan(problem, plan).status != "valid" or check_pins(problem, plan).status != "valid":
        return None
    return plan


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_plan_of_a_tiny_problem_in_both_regimes(data: st.DataObject) -> None:
    """Alternatives, shared weights, recomputation, copies, pins, frameworks, ports; every kind of bound."""
    problem = data.draw(problems())
    plan = data.draw(a_plan(problem))
    assume(plan is not None)
    assert plan is not None
    for name in ("1f1b", "greedy", "1f1b-rr", "1f1b*"):
        try:
            schedule = services().schedule(name, problem, plan)
            assume(check_schedule(problem, plan, schedule).status == "valid")
            steady = simulate(problem, plan, schedule).period_ns != 0
        except PipebenchError:
            continue
        if steady:
            certified(problem, plan, schedule)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "greedy", "zb-h1", "kfkb"])
def test_orders_of_a_chain(name: str) -> None:
    problem, plan = shared(3, 1, 6)
    certified(problem, plan, services().schedule(name, problem, plan))


@pytest.mark.parametrize(("name", "vee"), [("interleaved-1f1b", False), ("zb-v", True), ("greedy", True)])
def test_orders_of_devices_with_several_stages(name: str, vee: bool) -> None:
    problem, plan = shared(3, 2, 6, vee)
    certified(problem, plan, services().schedule(name, problem, plan))


@pytest.mark.parametrize("overlap", [0.0, 0.1, 1.0])
def test_two_pipelines_in_opposite_directions(overlap: float) -> None:
    problem, plan = mirrored(4, 8, 10, 25, weights=12)
    problem = replace(problem, overlap=overlap)
    for name in ("chimera", "greedy"):
        certified(problem, plan, services().schedule(name, problem, plan))


@pytest.mark.parametrize("name", ["periodic-bnb", "periodic-ilp"])
def test_a_pattern_of_devices_with_several_stages(name: str) -> None:
    problem, plan = shared(2, 2, 4)
    problem = replace(problem, regime=replace(problem.regime, mode="async"))
    certified(problem, plan, services().schedule(name, problem, plan))


def test_a_forward_of_no_time_holds_what_begins_beside_it() -> None:
    """Both forwards start at 0 ns: one needs 7 bytes while it runs, then the other has saved its 5."""
    problem = chain_problem([0, 4], [3, 3], cluster(1), saved=[2, 5], mode="async", mini_batch=4)
    costs = problem.profile.costs[0]
    first, second = costs.operators
    costs = replace(costs, operators=(replace(first, workspace_bytes=7), second))
    problem = replace(problem, profile=replace(problem.profile, costs=(costs,)))
    plan = stages_plan([[0], [1]])
    plan = replace(plan, stages=tuple(replace(each, devices=(0,)) for each in plan.stages), placement="in-turn")
    schedule = services().schedule("modulo", problem, plan)
    assert check_schedule(problem, plan, schedule).peak_bytes == {0: 2 + 7 + 5}
    certified(problem, plan, schedule)


def test_peaks_are_those_of_the_check() -> None:
    for case in valid_cases().values():
        assert case.schedule is not None
        content = json.loads(of_case(case.name).data)["content"]
        peaks = check_schedule(case.problem, case.plan, case.schedule).peak_bytes
        assert dict(content["claims"]["peak_bytes"]) == peaks


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=2, max_size=4), st.sampled_from([0.5e9, 0.8e9, 3e9]))
def test_patterns_whose_messages_share_a_bandwidth(figures: list[tuple[int, int, int]], shared: float) -> None:
    """There is no pace by formula: the certificate is a round of the run, where the run repeats."""
    forward, backward, cuts = ([each[part] for each in figures] for part in range(3))
    problem, plan = chain(forward, backward, cuts[:-1], "full")
    problem = with_ports(problem, shared)
    schedule = pattern(forward, backward, cuts[:-1], sum(forward) + sum(backward) + 2 * sum(cuts))
    certified(problem, plan, schedule)
